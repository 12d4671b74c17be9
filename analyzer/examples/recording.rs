//! Times recording beside a plain pass over the same tokens, for `docs/measured.md`.
//!
//! `cargo run --release -p epikv-analyzer --example recording -- MODEL TOKENS RUNS [SIGNAL,..|attention]` runs a plain pass
//! and a recording in turns, in the same chunks. It prints the median CPU seconds of both, which other programs disturb less than elapsed ones do,
//! the share that recording adds (median over the turns, least and most), and the most memory that the process ever held. All
//! as Linux counts it. Without signals those of hidden states, keys and values are recorded.

use std::error::Error;
use std::io::Write;

use epikv_analyzer::{RecordOptions, record};
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_model::taps::ProbePlan;
use epikv_model::{Device, load::ModelRef};
use epikv_schemas::Trace;
use epikv_signals::{SIGNALS, SignalRow};
use epikv_stats::quantile::median;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = |what: &'static str| args.next().ok_or(what);
    let reference: ModelRef = next("expected MODEL TOKENS RUNS")?.parse()?;
    let (n, runs): (usize, usize) = (next("expected TOKENS")?.parse()?, next("expected RUNS")?.parse()?);
    let named = next("").ok();
    let (config, weights, _) = open(&reference)?;
    let (vocab_size, n_layers) = (config.vocab_size, config.n_layers);
    let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32)?;
    let is_asked = |row: &&SignalRow| -> Result<bool, epikv_signals::Error> {
        let name = row.spec.name;
        Ok(match named.as_deref() {
            None => row.has_layers() && !row.needs_attention(n_layers)?,
            Some("attention") => row.needs_attention(n_layers)?,
            Some(names) => names.split(',').any(|own| own == name),
        })
    };
    let signals: Vec<&SignalRow> = SIGNALS.iter().filter(|row| is_asked(row).unwrap_or(false)).collect();
    let trace = trace((0..n).map(|i| ((i * 7919 + i * i % 104_729) % vocab_size) as i32).collect());
    let options = RecordOptions::default();
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let started = cpu_seconds()?;
        plain_pass(&decoder, &trace, options.chunk.get())?;
        let between = cpu_seconds()?;
        let recording = record(&decoder, &trace, &signals, options)?;
        recorded.push(cpu_seconds()? - between);
        plain.push(between - started);
        drop(recording);
    }
    let mut shares: Vec<f64> = plain.iter().zip(&recorded).map(|(plain, recorded)| recorded / plain - 1.0).collect();
    shares.sort_by(f64::total_cmp);
    let middle = |values: &[f64]| median(values).unwrap_or_default();
    let names: Vec<&str> = signals.iter().map(|row| row.spec.name).collect();
    writeln!(
        std::io::stdout(),
        "{n} tokens, {} signals ({}): plain {:.2} s, recording {:.2} s, adds {:.1} % ({:.3?}), {}",
        names.len(),
        names.join(" "),
        middle(&plain),
        middle(&recorded),
        100.0 * middle(&shares),
        shares,
        peak()
    )?;
    Ok(())
}

/// A pass that records nothing, in the chunks of a recording.
fn plain_pass(decoder: &Decoder, trace: &Trace, chunk: usize) -> Result<(), Box<dyn Error>> {
    let ids: Vec<u32> = trace.token_ids.iter().map(|&id| id as u32).collect();
    let mut cache = decoder.cache(Scope::Global, Capacity::Fixed(ids.len()))?;
    for part in ids.chunks(chunk) {
        let input = RowInput::next(&cache, part.to_vec(), LogitsOf::None);
        decoder.forward(&[input], &mut [&mut cache], &ProbePlan::default())?;
    }
    Ok(())
}

/// Seconds that all threads of the process have run, in user code and in the kernel.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Fields 14 and 15; the name before may hold blanks and ends with a bracket.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks = fields.map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / TICKS_A_SECOND)
}

/// The most memory that was ever resident, as the kernel says.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    format!("at most {} resident", line.map_or("an unknown part", str::trim))
}

fn trace(token_ids: Vec<i32>) -> Trace {
    let n = token_ids.len() as i32;
    Trace {
        trace_id: "made".to_owned(),
        dataset: "made".to_owned(),
        problem_id: "made".to_owned(),
        split: None,
        problem: String::new(),
        prompt: None,
        n_prompt: 0,
        n_reason: n,
        n_answer: 0,
        reason_start: 0,
        boundary: n,
        boundary_kind: "last64".to_owned(),
        n_think_end: 0,
        token_ids,
        text: String::new(),
        answer: None,
        gold: None,
        correct: None,
        verdict: "no_gold".to_owned(),
        finish_reason: "imported".to_owned(),
        sample: 0,
        seed: Some(0),
        temperature: Some(0.0),
        top_p: Some(1.0),
        gold_spans: None,
        model: None,
    }
}
