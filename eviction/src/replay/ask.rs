//! Settings and results of a replay.

use epikv_model::Model;
use epikv_schemas::{EvictionCurve, EvictionReplay};
use serde_json::Value;

use super::cells::ReplayCells;
use crate::experiment::config::Settings;
use crate::experiment::labels::LabelSet;
use crate::policy::budget::Budget;
use crate::policy::parse::NamedPolicy;

/// What came of a replay.
#[derive(Debug, Default)]
pub struct Replay {
    /// One row a trace, policy and budget.
    pub rows: Vec<EvictionReplay>,
    /// One row a trace, score, direction and share.
    pub curves: Vec<EvictionCurve>,
    /// Traces that could not be replayed, with the reason.
    pub skipped: Vec<String>,
    /// Rows that an earlier run had finished.
    pub n_reused: usize,
}

/// How traces are replayed.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// Policies, budgets and the rest that a free run has too.
    pub settings: &'a Settings,
    /// New tokens of an answer at most.
    pub answer_tokens: usize,
    /// How many in a hundred tokens the curves keep or delete.
    pub percents: &'a [u8],
    /// Where finished parts are kept; nowhere without.
    pub cells: Option<&'a ReplayCells>,
}

/// What all traces are replayed with.
pub(super) struct Worker<'a> {
    pub(super) model: &'a Model,
    pub(super) identity: &'a Value,
    pub(super) set: &'a LabelSet,
    pub(super) policies: &'a [NamedPolicy],
    pub(super) budgets: &'a [Budget],
    pub(super) ask: Ask<'a>,
}
