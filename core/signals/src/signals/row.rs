//! A row of the table of signals: what is said of one, and how it is made.

use super::late::LateSignal;
use super::per_layer::At;
use super::signal::{Signal, SignalSpec};
use crate::error::Result;
use crate::scores::ScoreRef;

/// How a signal is made.
#[derive(Debug, Clone, Copy)]
pub enum Build {
    /// One a layer.
    PerLayer(fn(At) -> Result<Box<dyn Signal>>),
    /// One a layer, and their mean.
    PerLayerAndMean(fn(At) -> Result<Box<dyn Signal>>),
    /// One a model, from the number of layers.
    PerModel(fn(usize) -> Result<Box<dyn Signal>>),
    /// One a model, known so many tokens after the token: `h2o_attn@age=W`.
    Aged(usize),
    /// One a model, known at the end of the sequence.
    Late(fn(usize) -> Result<Box<dyn LateSignal>>),
    /// A score of policies, one a model: at the end of the trace, or so many tokens after the token.
    Score(ScoreRef, Option<usize>),
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct SignalRow {
    /// Name, documentation, unit and source.
    pub spec: &'static SignalSpec,
    /// How it is made. Rows hold constructors, never shared instances.
    pub build: Build,
}

impl SignalRow {
    pub(super) const fn new(spec: &'static SignalSpec, build: Build) -> Self {
        Self { spec, build }
    }
}
