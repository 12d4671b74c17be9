//! The rows of a run, and how far it is.

use epikv_model::session::Ledger;
use epikv_schemas::{LabelPair, LabelRefined, LabelTiming, LabelToken, LabelTrace, LabelWindow};

use crate::error::Error;
use crate::run::noise::NoiseFloor;

/// What a run gives.
#[derive(Debug, Default)]
pub struct Labels {
    /// One row a window.
    pub windows: Vec<LabelWindow>,
    /// One row a part of a window that was withheld alone, if flipping windows are refined.
    pub refined: Vec<LabelRefined>,
    /// One row a pair of windows.
    pub pairs: Vec<LabelPair>,
    /// One row a token of a labelled trace.
    pub tokens: Vec<LabelToken>,
    /// One row a trace whose control was run.
    pub traces: Vec<LabelTrace>,
    /// One row a regeneration.
    pub timings: Vec<LabelTiming>,
    /// Traces that were left out because their own answer is wrong.
    pub n_incorrect: usize,
    /// Traces that could not be labelled.
    pub failures: Vec<Failure>,
    /// How often an answer changes although nothing changed.
    pub noise_floor: NoiseFloor,
    /// Tokens that went through the model.
    pub ledger: Ledger,
}

/// A trace that could not be labelled.
#[derive(Debug)]
pub struct Failure {
    /// The trace.
    pub trace_id: String,
    /// Why.
    pub error: Error,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Regenerations of a phase that are planned.
    Planned {
        /// `controls` or `windows`.
        phase: &'static str,
        /// How many.
        total: usize,
    },
    /// One more is done.
    Done,
}
