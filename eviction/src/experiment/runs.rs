//! Progress and results of an experiment.

use epikv_model::session::Ledger;
use epikv_schemas::{EvictionRun, EvictionTiming};

/// How far the experiment is.
#[derive(Debug, Clone, Copy)]
pub enum Progress {
    /// So many generations will be made.
    Planned(usize),
    /// One was made, or turned out not to be needed.
    Done,
}

/// Everything that came of an experiment, and what its folder held before.
#[derive(Debug, Default)]
pub struct Runs {
    /// One row a generation, or a generation that could not be.
    pub rows: Vec<EvictionRun>,
    /// What each generation cost.
    pub timings: Vec<EvictionTiming>,
    /// Problems that could not be run, with the reason. Infeasible ones are no failures: they were asked for.
    pub failures: Vec<String>,
    /// Tokens that went through the model this time.
    pub ledger: Ledger,
    /// Generations that were there already.
    pub n_resumed: usize,
}
