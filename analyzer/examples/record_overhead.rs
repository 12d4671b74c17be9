//! What recording costs: seconds of a teacher-forced pass with each family of signals, over the same pass without any.
//!
//! `cargo run --release --example record_overhead -- MODEL TOKENS RUNS`. Ids are drawn by rule; times are the least of RUNS,
//! taken in turns so that a slow minute of the machine falls on all alike. Peak memory is for `/usr/bin/time -v` to say.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use epikv_analyzer::{RecordOptions, record};
use epikv_model::Device;
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_schemas::Trace;
use epikv_signals::{SIGNALS, SignalRow};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("expected MODEL TOKENS RUNS");
    let (config, weights, _) = open(&next()?.parse()?)?;
    let (n, runs): (usize, usize) = (next()?.parse()?, next()?.parse()?);
    let (n_layers, vocab) = (config.n_layers, config.vocab_size);
    let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32)?;
    let trace = trace(n, vocab);
    let family = |is: &dyn Fn(&str) -> bool| -> Vec<&'static SignalRow> {
        SIGNALS.iter().filter(|row| is(row.spec.name) && row.all(n_layers).is_ok()).collect()
    };
    let families = [
        ("no signal", Vec::new()),
        ("residual stream", family(&|name| name.starts_with("hs_"))),
        ("keys and values", family(&|name| name.starts_with("kv_") || name == "cross_head_var")),
        ("both", family(&|name| name.starts_with("hs_") || name.starts_with("kv_") || name == "cross_head_var")),
        ("lag and key difference", family(&|name| name.starts_with("lag_") || name == "key_diff")),
        ("logits", family(&|name| ["surprisal", "entropy", "margin"].contains(&name))),
        ("attention", family(&|name| name.starts_with("attn_") || name.starts_with("h2o_"))),
    ];
    let mut least = vec![f64::INFINITY; families.len()];
    for _ in 0..runs.max(1) {
        for ((_, rows), least) in families.iter().zip(&mut least) {
            let started = Instant::now();
            record(&decoder, &trace, rows, RecordOptions::default())?;
            *least = least.min(started.elapsed().as_secs_f64());
        }
    }
    for ((name, rows), seconds) in families.iter().zip(&least) {
        writeln!(
            std::io::stdout(),
            "{name:24} {:2} signals {seconds:8.3} s  {:+6.1} %",
            rows.len(),
            100.0 * (seconds / least[0] - 1.0)
        )?;
    }
    Ok(())
}

/// A trace of `n` tokens, a tenth of them prompt.
fn trace(n: usize, vocab: usize) -> Trace {
    let ids = (0..n).map(|i| (3 + (i * i * 7 + i * 13) % (vocab - 3)) as i32);
    Trace {
        trace_id: "made".to_owned(),
        dataset: "made".to_owned(),
        problem_id: "made".to_owned(),
        split: None,
        problem: String::new(),
        prompt: None,
        n_prompt: (n / 10) as i32,
        n_reason: (n - n / 10) as i32,
        n_answer: 0,
        reason_start: (n / 10) as i32,
        boundary: n as i32,
        boundary_kind: "last64".to_owned(),
        n_think_end: 0,
        token_ids: ids.collect(),
        text: String::new(),
        answer: None,
        gold: None,
        correct: None,
        verdict: "no_gold".to_owned(),
        finish_reason: "imported".to_owned(),
        sample: 0,
        seed: 0,
        temperature: 0.0,
        top_p: 1.0,
        gold_spans: None,
    }
}
