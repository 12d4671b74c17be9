//! The trait of scores, and what the tables say of one.

use std::sync::Arc;

use epikv_model::cache::{Pos, RowCache};
use epikv_model::sampler::RandomStream;
use epikv_model::taps::ProbePlan;

use super::frozen::Frozen;
use crate::error::Result;
use crate::taps::Chunk;

/// What the tables say of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreSpec {
    /// Name on the command line and in files.
    pub name: &'static str,
    /// What a token is worth, in one sentence.
    pub doc: &'static str,
    /// Where the definition comes from.
    pub source: &'static str,
    /// Where it differs from there; empty where it does not.
    pub differs: &'static str,
    /// What it is computed from.
    pub needs: &'static [Need],
    /// What may stand in brackets behind the name: `LAYER+LAYER`.
    pub forms: &'static [&'static str],
    /// Whether a token is scored once, when it is fed; otherwise all tokens held are scored again at each eviction.
    pub frozen: bool,
    /// Whether a frozen score gives a token other numbers in other kept sets; what is computed from what is held always does.
    pub by_set: bool,
    /// Whether tokens can be drawn in proportion to it: it is computed from what is held and never below zero.
    pub weight: bool,
}

impl ScoreSpec {
    /// Blank fields for a row to replace: no source, nothing needed, no argument, computed from what is held.
    pub const BLANK: Self = Self {
        name: "",
        doc: "",
        source: "",
        differs: "",
        needs: &[],
        forms: &[],
        frozen: false,
        by_set: false,
        weight: false,
    };
}

/// What a score is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Need {
    /// Attention weights, which the fused kernels of GPUs never write down.
    Attention,
    /// Queries of new tokens.
    Queries,
    /// The residual stream of new tokens.
    Residual,
    /// Logits of new tokens.
    Logits,
    /// Keys, of new tokens or of those held.
    Keys,
    /// Values, of new tokens or of those held.
    Values,
    /// Labels of an earlier `epikv label`.
    Labels,
    /// Random numbers.
    RandomNumbers,
}

impl Need {
    /// What the tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attention => "attention weights",
            Self::Queries => "queries",
            Self::Residual => "residual stream",
            Self::Logits => "logits",
            Self::Keys => "keys",
            Self::Values => "values",
            Self::Labels => "labels",
            Self::RandomNumbers => "random numbers",
        }
    }
}

/// Labels by position, prompt included: the share of windows over a token that flipped the answer; null where there is none.
pub type Labels = Arc<[Option<f32>]>;

/// What a score is made for.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Layers of the model.
    pub n_layers: usize,
    /// Newest tokens that are protected.
    pub recency: usize,
    /// Which random numbers.
    pub stream: RandomStream,
    /// Labels of the problem, for a score that replays them. Without any, every token counts as unlabelled.
    pub labels: Option<Labels>,
}

impl Setup {
    /// For a model of so many layers: all recent tokens protected, keys of random numbers zero, no labels.
    pub fn new(n_layers: usize) -> Self {
        let stream = RandomStream { seed: 0, problem: 0, sample: 0 };
        Self { n_layers, recency: usize::MAX, stream, labels: None }
    }
}

/// The new tokens of one row, after the pass that fed them and before anything is evicted.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// What was recorded of them.
    pub chunk: &'a Chunk<'a>,
    /// The cache that holds them now.
    pub cache: &'a RowCache,
    /// Whether they are prompt tokens; otherwise they were generated.
    pub prompt: bool,
}

/// What a token is worth to a policy in one generation. Higher is kept.
///
/// A score of what is held implements [`Score::scores`] and, where it has state, [`Score::observe`] and [`Score::evicted`].
/// A frozen one gives each token its number in `observe` and lends all of them by [`Score::frozen`]; a [`Signal`] becomes
/// one by [`SignalScore`].
///
/// [`Signal`]: crate::Signal
/// [`SignalScore`]: crate::SignalScore
pub trait Score: std::fmt::Debug + Send {
    /// The row of the tables.
    fn spec(&self) -> &'static ScoreSpec;

    /// What the forward pass must record: nothing, unless told otherwise.
    fn plan(&self) -> ProbePlan {
        ProbePlan::default()
    }

    /// Takes the new tokens of a pass.
    ///
    /// # Errors
    /// If the pass did not record what [`Score::plan`] asks for.
    fn observe(&mut self, step: &Step<'_>) -> Result<()> {
        let _ = step;
        Ok(())
    }

    /// The scores of the tokens that each kept set holds: one list a set, `[n]` in order of positions, without `NaN`.
    ///
    /// # Errors
    /// If keys or values cannot be read, or the cache is not the one that was observed.
    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>>;

    /// Forgets the token at a position, which a kept set has lost.
    fn evicted(&mut self, set: usize, pos: Pos) {
        let _ = (set, pos);
    }

    /// The numbers of all tokens fed so far, where each is given once.
    fn frozen(&self) -> Option<&Frozen> {
        None
    }

    /// The two layers that it compares, where it does.
    fn layers(&self) -> Option<[usize; 2]> {
        None
    }

    /// Whether a pass may feed it one generated token only, because its state depends on every row of attention.
    fn by_single_tokens(&self) -> bool {
        false
    }
}
