//! The journal of `epikv trace`: a killed run goes on with the generations that it had finished.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use epikv_model::Model;
use epikv_model::session::Finish;
use epikv_schemas::Journal;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::TraceArgs;

/// A generation that is kept until all are there.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    problem: String,
    sample: u32,
    prompt: Vec<u32>,
    generated: Vec<u32>,
    finish: String,
    n_forwarded: usize,
    wall_s: f64,
}

/// The journal of a run, and what an earlier one left in it, by problem and sample.
pub(super) struct Kept {
    journal: Journal,
    done: HashMap<(String, u32), Line>,
}

impl Kept {
    pub(super) fn open(path: &Path, model: &Model, args: &TraceArgs) -> Result<Self> {
        let head = json!({
            "version": 1,
            "tool": env!("CARGO_PKG_VERSION"),
            "architecture": std::env::consts::ARCH,
            "model": model.provenance()?,
            "stop_ids": model.stop_ids(),
            "max_new": args.max_new,
            "temperature": args.sampling.temperature,
            "top_p": args.sampling.top_p,
            "seed": args.model.seed,
        });
        if args.model.fresh && path.is_file() {
            std::fs::remove_file(path).with_context(|| format!("removing {}", path.display()))?;
        }
        let (journal, lines) = Journal::open::<Line>(path, &head)?;
        let done: HashMap<_, _> = lines.into_iter().map(|line| ((line.problem.clone(), line.sample), line)).collect();
        if !done.is_empty() {
            writeln!(crate::terminal::err(), "{} generations of an earlier run are taken over", done.len())?;
        }
        Ok(Self { journal, done })
    }

    /// What is kept of a generation, with the same prompt.
    pub(super) fn find(&self, problem: &str, sample: u32, prompt: &[u32]) -> Option<Ended> {
        let line = self.done.get(&(problem.to_owned(), sample)).filter(|line| line.prompt == prompt)?;
        Some(Ended {
            generated: line.generated.clone(),
            finish: Finish::from_name(&line.finish)?,
            n_forwarded: line.n_forwarded,
            wall_s: line.wall_s,
        })
    }

    /// Keeps a generation.
    pub(super) fn add(&mut self, problem: &str, sample: u32, prompt: &[u32], ended: &Ended) -> Result<()> {
        let line = Line {
            problem: problem.to_owned(),
            sample,
            prompt: prompt.to_vec(),
            generated: ended.generated.clone(),
            finish: ended.finish.name().to_owned(),
            n_forwarded: ended.n_forwarded,
            wall_s: ended.wall_s,
        };
        Ok(self.journal.add(&line)?)
    }

    /// Removes the journal, once the traces are in place.
    pub(super) fn remove(self) -> Result<()> {
        Ok(self.journal.remove()?)
    }
}

/// What a generation came to.
pub(super) struct Ended {
    pub(super) generated: Vec<u32>,
    pub(super) finish: Finish,
    pub(super) n_forwarded: usize,
    pub(super) wall_s: f64,
}
