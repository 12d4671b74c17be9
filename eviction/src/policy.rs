//! A policy: six small parts. Swapping one and keeping the others is the controlled experiment.

use std::fmt;

use epikv_model::cache::Scope;

use crate::score::Score;

/// What is kept whatever it scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protect {
    /// The prompt.
    pub prompt: bool,
    /// The newest tokens, as many as the budget says.
    pub recency: bool,
}

/// How the kept tokens are chosen among those that are not protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Select {
    /// The highest scores; among equals the newer token.
    TopK,
}

/// When tokens are evicted. Always after a step, never inside a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// Never.
    Never,
    /// After each step that leaves more tokens than the budget.
    EachStep,
}

/// At which rotary position a new token stands after evictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PositionMode {
    /// At its place in the whole sequence; kept keys are left as they are.
    Logical,
}

/// A composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What a token is worth.
    pub score: Score,
    /// What is kept whatever it scores.
    pub protect: Protect,
    /// How the kept tokens are chosen.
    pub select: Select,
    /// When tokens are evicted.
    pub trigger: Trigger,
    /// Who shares one kept set.
    pub scope: Scope,
    /// Where new tokens stand.
    pub position: PositionMode,
}

impl fmt::Display for Protect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.prompt, self.recency) {
            (true, true) => "prompt+recency",
            (true, false) => "prompt",
            (false, true) => "recency",
            (false, false) => "nothing",
        })
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TopK => f.write_str("top-k"),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "never",
            Self::EachStep => "each-step",
        })
    }
}

impl fmt::Display for PositionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Logical => f.write_str("logical"),
        }
    }
}

impl fmt::Display for Policy {
    /// The parts as the command line writes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = match self.scope {
            Scope::Global => "global",
            Scope::PerLayer => "per-layer",
            Scope::PerHead => "per-head",
        };
        let Self { score, protect, select, trigger, position, .. } = self;
        write!(f, "score={score};protect={protect};select={select};trigger={trigger};scope={scope};position={position}")
    }
}
