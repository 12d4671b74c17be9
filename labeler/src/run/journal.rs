//! The journal: finished regenerations, in a file that outlives a killed run.
//!
//! Each regeneration adds one line as soon as it ends, keyed by the digest of its context. The first line says what
//! else determines a result. So a killed run can go on, and its files equal those of a run that was not killed.

use std::collections::HashMap;
use std::path::Path;

use epikv_model::Model;
use epikv_model::session::{DraftScore, Finish};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::Result;
use crate::run::config::Config;
use crate::run::regenerate::Regenerated;

/// Version of the lines.
const VERSION: u32 = 3;

/// The journal of a run.
#[derive(Debug)]
pub struct Journal {
    lines: epikv_schemas::Journal,
    done: HashMap<String, Line>,
}

/// A result.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    /// Digest of the context.
    context: String,
    ids: Vec<u32>,
    finish: String,
    /// Bits of the smallest margin, so that nothing is rounded.
    min_margin: Option<u32>,
    /// Tokens of the control's answer that are scored, and the bits of their log-probability.
    score: Option<(usize, u64)>,
    n_forwarded: usize,
    wall_s: f64,
}

impl Journal {
    /// Opens the journal at `path` for regenerations by a model under a configuration. What another model, configuration,
    /// version or architecture left there is dropped, and so are damaged lines.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(path: &Path, model: &Model, config: &Config) -> Result<Self> {
        let head = json!({
            "version": VERSION,
            "tool": env!("CARGO_PKG_VERSION"),
            "architecture": std::env::consts::ARCH,
            "model": model.provenance()?,
            "stop_ids": model.stop_ids(),
            "max_new": config.max_new,
            "stop": config.stop,
            "intervention": config.intervention,
        });
        let (lines, done) = epikv_schemas::Journal::open::<Line>(path, &head)?;
        let done = done.into_iter().map(|line| (line.context.clone(), line)).collect();
        Ok(Self { lines, done })
    }

    /// Results that it holds.
    pub fn len(&self) -> usize {
        self.done.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// The result for a context.
    pub(crate) fn find(&self, context: &str, model: &Model) -> Result<Option<Regenerated>> {
        let Some(line) = self.done.get(context) else { return Ok(None) };
        let Some(finish) = Finish::from_name(&line.finish) else { return Ok(None) };
        let min_margin = line.min_margin.map(f32::from_bits);
        let score = line.score.map(|(n_tokens, bits)| DraftScore { n_tokens, log_prob: f64::from_bits(bits) });
        let mut found = Regenerated::new(model, &line.ids, finish, min_margin, line.n_forwarded, line.wall_s)?;
        found.score = score;
        Ok(Some(found))
    }

    /// Adds a result.
    pub(crate) fn add(&mut self, context: String, result: &Regenerated) -> Result<()> {
        let line = Line {
            context,
            ids: result.ids.to_vec(),
            finish: result.finish.name().to_owned(),
            min_margin: result.min_margin.map(f32::to_bits),
            score: result.score.map(|score| (score.n_tokens, score.log_prob.to_bits())),
            n_forwarded: result.n_forwarded,
            wall_s: result.wall_s,
        };
        Ok(self.lines.add(&line)?)
    }

    /// Removes it, once everything it holds stands in the files of the run.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(self) -> Result<()> {
        Ok(self.lines.remove()?)
    }
}
