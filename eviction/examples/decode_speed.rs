//! Decode speed under a policy, as one JSON object: what `benches/peers/decode.py` puts beside other programs.
//!
//! ```text
//! decode_speed MODEL f32|q8_0 POLICY BUDGET NEW_TOKENS BATCH THREADS [SIGNAL|kept]
//! ```
//!
//! Every row decodes greedily from the same made-up prompt, without a stop. Rates are of decoding alone, prompts left out.
//! With `SIGNAL` that signal is recorded at every token and layer, as a policy that reads it would. With `kept` the tokens of the
//! first row are told, and those that each layer and head holds at the end; its times then include taking that down.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use epikv_eviction::{Decoded, Eviction, Generation, Limits, NamedPolicy, Recorded, Watch, decode_all};
use epikv_model::Device;
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use rayon::prelude::*;
use serde_json::json;

/// Tokens of the prompt.
const N_PROMPT: usize = 64;

/// Numbers that the memory bandwidth is measured with: 256 MiB.
const N_READ: usize = 64 << 20;

/// Slices of a run whose times are told.
const SLICES: usize = 8;

/// The word that asks for what is held at the end.
const KEPT: &str = "kept";

/// Evicted positions by layer and head.
type Evicted = BTreeMap<(Option<usize>, Option<usize>), Vec<u32>>;

/// Takes down the time of each step and what was decoded.
struct Clock {
    started: Instant,
    signal: Option<String>,
    evicted: Mutex<Evicted>,
    steps: Mutex<Vec<(usize, Duration)>>,
    done: Mutex<Vec<Decoded>>,
}

impl Watch for Clock {
    fn done(&self, _: usize, decoded: Decoded) -> epikv_eviction::Result<()> {
        self.done.lock().expect("no panic").push(decoded);
        Ok(())
    }

    fn step(&self, n_fed: usize) {
        self.steps.lock().expect("no panic").push((n_fed, self.started.elapsed()));
    }

    fn wants_signals(&self, n_layers: usize) -> epikv_eviction::Result<Vec<Recorded>> {
        let Some(name) = self.signal.as_ref().filter(|name| *name != KEPT) else { return Ok(Vec::new()) };
        let all = epikv_signals::find(name)?.all(n_layers)?;
        Ok(all.into_iter().map(|(layer, signal)| Recorded::new(layer, signal)).collect())
    }

    fn wants_evictions(&self) -> bool {
        self.signal.as_deref() == Some(KEPT)
    }

    fn evicted(&self, job: usize, _: usize, evictions: Vec<Eviction>) -> epikv_eviction::Result<()> {
        let mut evicted = self.evicted.lock().expect("no panic");
        for one in evictions.into_iter().filter(|_| job == 0) {
            evicted.entry((one.layer, one.head)).or_default().push(one.pos.0);
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, weights, policy, budget, n_new, batch, threads, signal @ ..] = &args[..] else {
        anyhow::bail!("expected MODEL f32|q8_0 POLICY BUDGET NEW_TOKENS BATCH THREADS [SIGNAL]");
    };
    let (n_new, batch): (usize, usize) = (n_new.parse()?, batch.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build_global()?;
    let format = if weights == "q8_0" { WeightFormat::Q8_0 } else { WeightFormat::F32 };
    let (config, source, _) = open(&model.parse()?)?;
    let decoder = Decoder::load(config, &*source, &Device::Cpu, format)?;
    let policy: NamedPolicy = policy.parse()?;
    let prompt: Vec<u32> = (0..N_PROMPT as u32).map(|i| 300 + i * i * 31 % 5000).collect();
    let limits = if policy.policy.evicts() {
        Limits::new(budget.parse()?, N_PROMPT, policy.policy.protect)?
    } else {
        Limits::unlimited(N_PROMPT)
    };
    let run = |n_new: usize| -> Result<Clock> {
        let jobs: Vec<_> = (0..batch).map(|_| (limits.clone(), Generation::greedy(&prompt, n_new))).collect();
        let signal = signal.first().cloned();
        let (steps, done, evicted) = (Mutex::default(), Mutex::default(), Mutex::default());
        let clock = Clock { started: Instant::now(), signal, evicted, steps, done };
        decode_all(&decoder, &policy.policy, &jobs, batch, &clock)?;
        Ok(clock)
    };
    run(8)?; // Warm-up: pages of the weights.
    let clock = run(n_new)?;
    let (steps, done, evicted) = (clock.steps.into_inner()?, clock.done.into_inner()?, clock.evicted.into_inner()?);
    // The first step reads the prompts; one step later every row has its second token.
    let decode: Vec<Duration> =
        steps.windows(2).filter(|w| w[1].0 == batch).map(|w| w[1].1.saturating_sub(w[0].1)).collect();
    let seconds = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64();
    let first = done.first().context("something was decoded")?;
    let slices: Vec<f64> = decode
        .chunks(decode.len().div_ceil(SLICES).max(1))
        .map(|slice| 1e3 * seconds(slice) / slice.len() as f64)
        .collect();
    let total = seconds(&decode);
    let mut sorted = decode.clone();
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2].as_secs_f64();
    let times = |of: fn(&Decoded) -> Duration| done.iter().map(of).sum::<Duration>().as_secs_f64();
    let mut found = json!({
        "tokens_per_s": (decode.len() * batch) as f64 / total,
        "ms_a_step": slices,
        "median_ms": 1e3 * median,
        "score_s": times(|d| d.times.score),
        "select_s": times(|d| d.times.select),
        "move_s": times(|d| d.times.moves),
        "decode_s": total,
        "weight_bytes": decoder.bytes(),
        // Of the embedding a token reads one row.
        "weight_bytes_a_token": decoder.bytes() - 4 * decoder.config().vocab_size * decoder.config().hidden_size,
        "read_bytes_per_s": bandwidth(),
        "peak_kv_bytes": first.certificate.peak_kv_bytes,
        "max_held": first.certificate.max_held,
        "peak_process_bytes": peak_bytes(),
        "first_tokens": &first.generated[..first.generated.len().min(16)],
    });
    if clock.signal.as_deref() == Some(KEPT) {
        found["generated"] = json!(first.generated);
        // The last token is never fed.
        let fed = 0..(N_PROMPT + first.generated.len() - 1) as u32;
        let held = |gone: &Vec<u32>| -> Vec<u32> { fed.clone().filter(|pos| !gone.contains(pos)).collect() };
        found["held"] = evicted.values().map(held).collect();
    }
    writeln!(std::io::stdout(), "{found}")?;
    Ok(())
}

/// Bytes a second that all threads read together, the best of five passes over 256 MiB.
fn bandwidth() -> f64 {
    let numbers = vec![1.0_f32; N_READ];
    let pass = || {
        let started = Instant::now();
        let sum: f32 = numbers.par_chunks(1 << 16).map(lanes).sum();
        let seconds = started.elapsed().as_secs_f64();
        if sum > 0.0 { (4 * N_READ) as f64 / seconds } else { 0.0 }
    };
    (0..5).map(|_| pass()).fold(0.0, f64::max)
}

/// A sum in 64 independent lanes, so that reading is what takes the time.
fn lanes(part: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 64];
    for chunk in part.chunks_exact(64) {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *sum += x;
        }
    }
    sums.iter().sum()
}

/// Most memory that the process held, where the system says.
fn peak_bytes() -> Option<u64> {
    let status = epikv_schemas::fs::read_text(std::path::Path::new("/proc/self/status"), 1 << 20).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
