//! The cost of a run, estimated before it starts.
//!
//! With `b` tokens up to the answer of a trace, windows that start at `s`, and an answer of `a` tokens, the protocols read
//!
//! ```text
//! naive: sum over windows of b          prefill, and of a tokens decoded one by one
//! fast:  1 + sum over windows of b - s  prefill, and of a tokens of a draft   (occlude; see `intervention` for the others)
//! ```
//!
//! and both `b` and `a` once for the control, whose `b` the fast protocol keeps for the windows as far as there is room. A
//! window whose answer changes decodes some of its tokens in the fast protocol too; how many is not known before. The answer's
//! length is that of the trace's own.

use std::time::Instant;

use epikv_model::Model;
use epikv_model::session::Ledger;
use epikv_schemas::Trace;
use serde::Serialize;

use crate::error::Result;
use crate::run::config::{Config, Protocol, Settings, Stop};
use crate::run::job::Job;
use crate::run::plan::n_read;
use crate::run::prefixes::fits;
use crate::run::regenerate::{Context, Scored, regenerate};

/// Tokens a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Reading many tokens in one pass.
    pub prefill: f64,
    /// Decoding, over all rows of a batch together.
    pub decode: f64,
}

impl Rates {
    /// Measures both on this device, with the batch and the sessions that a run would have.
    ///
    /// # Errors
    /// If the model fails.
    pub fn measure(model: &Model, config: &Config) -> Result<Self> {
        const CONTEXT: usize = 256;
        const NEW: usize = 24;
        let shape = model.decoder.config();
        let n_rows = config.batch.saturating_mul(2);
        let rate = |n_context: usize, max_new: usize, of: fn(Ledger) -> u64| -> Result<f64> {
            let n_context = n_context.min(shape.max_positions / 2).max(1);
            let contexts = (0..n_rows).map(|row| {
                let tokens = (0..n_context).map(|i| ((i * 31 + row * 17) % shape.vocab_size) as u32).collect();
                let (hidden, scored) = (None, Scored::Nothing);
                Ok((row, Context { tokens, prefix: None, hidden, draft: [].into(), scored, max_new }))
            });
            let settings = Settings { max_new, stop: Stop::Eos, ..Settings::clone(config) };
            let config = Config::try_from(settings)?;
            let started = Instant::now();
            let ledger = regenerate(model, n_rows, contexts, &config, |_, _| Ok(()))?;
            Ok(of(ledger) as f64 / started.elapsed().as_secs_f64())
        };
        rate(CONTEXT, 1, |ledger| ledger.prefill)?; // warms up
        Ok(Self {
            prefill: rate(CONTEXT, 1, |ledger| ledger.prefill)?,
            decode: rate(1, NEW, |ledger| ledger.decode.max(1))?,
        })
    }
}

impl std::str::FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let expected =
            || format!("{text:?}: expected PREFILL,DECODE in tokens a second, both above 0, such as 9000,400");
        let (prefill, decode) = text.split_once(',').ok_or_else(expected)?;
        let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
        let (prefill, decode) = number(prefill).zip(number(decode)).ok_or_else(expected)?;
        Ok(Self { prefill, decode })
    }
}

/// Counts of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Traces that would be labelled.
    pub n_traces: usize,
    /// Traces that cannot be.
    pub n_failed: usize,
    /// Windows.
    pub n_windows: usize,
    /// Tokens that the chosen protocol reads in passes of many.
    pub prefill: u64,
    /// Tokens of drafts among them.
    pub draft: u64,
    /// Tokens that it decodes one by one, if no answer changes.
    pub decode: u64,
    /// Tokens that the naive protocol reads and decodes.
    pub naive: (u64, u64),
    /// Bytes of the weights.
    pub weight_bytes: usize,
    /// Bytes of keys and values of a full batch of the longest trace.
    pub cache_bytes: usize,
}

impl Estimate {
    /// Counts what labelling `traces` takes.
    pub fn of(model: &Model, traces: &[Trace], config: &Config) -> Self {
        let shape = model.decoder.config();
        let stop_ids = model.stop_ids();
        let (mut n_traces, mut n_failed, mut n_windows) = (0, 0, 0);
        let (mut naive, mut shared, mut answers, mut longest, mut kept) = ((0, 0), 0, 0, 0, 0);
        let token_bytes = shape.kv_bytes_per_token();
        for trace in traces.iter().filter(|trace| !config.leaves_out(trace)) {
            let Ok(job) = Job::new(trace, config, shape, &model.tokenizer) else {
                n_failed += 1;
                continue;
            };
            let (boundary, answer) = (job.context.len() as u64, job.own_answer(&stop_ids).len() as u64);
            let grid = job.grid(config);
            let regenerations = grid.len() as u64 + 1;
            naive.0 += regenerations * boundary;
            naive.1 += regenerations * answer;
            let bytes = token_bytes * boundary as usize;
            let mut read = boundary + 1;
            if fits(kept, bytes) {
                kept += bytes;
            } else {
                read += boundary;
            }
            shared += read + grid.iter().map(|span| n_read(config, &job, span) as u64).sum::<u64>();
            answers += regenerations * answer;
            longest = longest.max(boundary + answer);
            n_traces += 1;
            n_windows += grid.len();
        }
        let (prefill, draft, decode) = match config.protocol {
            Protocol::Fast => (shared, answers, 0),
            Protocol::Naive => (naive.0, 0, naive.1),
        };
        let cache_bytes = token_bytes * longest as usize * config.batch;
        let weight_bytes = model.decoder.bytes();
        Self { n_traces, n_failed, n_windows, prefill, draft, decode, naive, weight_bytes, cache_bytes }
    }

    /// Seconds of the chosen protocol and of the naive one.
    pub fn seconds(&self, rates: Rates) -> (f64, f64) {
        let seconds = |read: u64, decoded: u64| read as f64 / rates.prefill + decoded as f64 / rates.decode;
        (seconds(self.prefill + self.draft, self.decode), seconds(self.naive.0, self.naive.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_checked() {
        assert_eq!("9000, 400".parse(), Ok(Rates { prefill: 9000.0, decode: 400.0 }));
        assert!(["", "1", "0,1", "1,-1", "nan,1", "1,inf"].iter().all(|text| text.parse::<Rates>().is_err()));
    }
}
