//! Errors of signals and scores.

use std::ops::Range;

use epikv_model::taps::{LogitTap, TapPoint};
use epikv_words::Hint;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of choosing and feeding a signal. A value that a formula does not define is no error: it is `None`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is not in the table.
    #[error("unknown signal {given:?}: expected one of {}", known.join(", "))]
    UnknownSignal {
        /// As typed.
        given: String,
        /// The names of the table.
        known: Vec<&'static str>,
    },
    /// A score in a form that no row of the table takes.
    #[error("unknown score {given:?}: expected one of {}", crate::score_forms())]
    ScoreForm {
        /// As typed.
        given: String,
    },
    /// Kept sets that hold different numbers of tokens, for a score that averages over them.
    #[error("score {score}: expected kept sets that hold the same tokens, got sets of {held:?} tokens")]
    UnequalSets {
        /// The score.
        score: &'static str,
        /// Tokens of each kept set.
        held: Vec<usize>,
    },
    /// A layer that the model does not have.
    #[error("signal {signal}: expected a layer below {n_layers}, got {layer}")]
    Layer {
        /// The signal.
        signal: &'static str,
        /// The layer, 0-based.
        layer: usize,
        /// Layers of the model.
        n_layers: usize,
    },
    /// A layer was given for a signal that has one value a model, or none for one that has a value a layer.
    #[error("signal {signal}: expected {expected}")]
    WrongBuild {
        /// The signal.
        signal: &'static str,
        /// How it is built.
        expected: &'static str,
    },
    /// Two layers that a score compares are the same layer of this model.
    #[error("signal {signal}: expected two layers that differ, got layer {layer} twice in a model of {n_layers}")]
    SameLayer {
        /// The signal.
        signal: &'static str,
        /// The layer, 0-based.
        layer: usize,
        /// Layers of the model.
        n_layers: usize,
    },
    /// The forward pass did not record what the signal's plan asks for.
    #[error("signal {signal}: expected the {what} of {point:?} among the taps, got none")]
    NotRecorded {
        /// The signal.
        signal: &'static str,
        /// The missing reduction.
        what: &'static str,
        /// The missing point.
        point: TapPoint,
    },
    /// The forward pass did not reduce the logits that the signal's plan asks for.
    #[error("signal {signal}: expected {tap:?} of the logits among the taps, got none")]
    NoLogits {
        /// The signal.
        signal: &'static str,
        /// The missing reduction.
        tap: LogitTap,
    },
    /// A chunk names tokens that the pass did not have.
    #[error("signal {signal}: expected tokens {}..{} among the taps, got {n_recorded} tokens", tokens.start, tokens.end)]
    ChunkOutside {
        /// The signal.
        signal: &'static str,
        /// Tokens of the chunk in the packed pass.
        tokens: Range<usize>,
        /// Tokens of the pass.
        n_recorded: usize,
    },
    /// A smoother that is not known.
    #[error("unknown smoothing {given:?}: expected raw, mean{window}, ema, z{window} or max{window}")]
    UnknownSmoothing {
        /// As typed.
        given: String,
        /// Tokens of the rolling window.
        window: usize,
    },
    /// The observed attention is not that of the cache.
    #[error("attention of layer {layer}: expected a weight for each of {expected} tokens held, got {got}")]
    AttentionShape {
        /// The layer, 0-based.
        layer: usize,
        /// Tokens that the cache holds.
        expected: usize,
        /// Weights observed; 0 where the pass did not observe them.
        got: usize,
    },
    /// The recorded queries are not those of the model that the cache is of.
    #[error(
        "window attention: expected queries of {} layers for {} KV heads, got {} layers of {} numbers",
        expected.0, expected.1, got.0, got.1
    )]
    QueryShape {
        /// Layers and KV heads of the cache.
        expected: (usize, usize),
        /// Layers, and numbers of a layer, that were recorded; 0 where no pass was.
        got: (usize, usize),
    },
    /// A recorded tensor cannot be read.
    #[error("reading what the pass recorded")]
    Model(#[source] Box<epikv_model::Error>),
    /// A rolling window cannot be built.
    #[error("rolling window")]
    Stats(#[from] epikv_stats::Error),
}

impl From<epikv_model::Error> for Error {
    fn from(error: epikv_model::Error) -> Self {
        Self::Model(Box::new(error)) // alone it is larger than all others
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownSignal { .. } => {
                Some(
                "`epikv signals` lists them all; h2o_attn@age=W takes any number of tokens, and a score of `epikv policies` \
                 is SCORE or SCORE@age=W"
                    .to_owned(),
            )
            }
            Self::ScoreForm { .. } => Some("`epikv policies` lists all scores".to_owned()),
            Self::UnknownSmoothing { .. } => Some("--smooth-window sets the window of all smoothers".to_owned()),
            Self::SameLayer { .. } => Some("the score needs a deeper model, or two layers given by hand".to_owned()),
            _ => None,
        }
    }
}
