//! A policy is a composition of a few small parts. Replacing one part and keeping the others is a controlled experiment.

pub(crate) mod allocate;
pub(crate) mod budget;
pub(crate) mod chosen_layers;
mod forms;
pub(crate) mod limits;
pub(crate) mod page;
pub(crate) mod parse;
pub(crate) mod protect;
pub(crate) mod read;
pub(crate) mod registry;
pub(crate) mod select;
pub(crate) mod trigger;

use std::fmt;

pub use epikv_model::cache::Precision as CacheNumbers;
use epikv_model::cache::{Rotation, Scope};
use epikv_model::sampler::RandomStream;
use epikv_signals::{Need, ScoreRef};

use crate::error::{Error, Result};

pub use allocate::Allocate;
pub use protect::{Protect, Recency};
pub use read::Read;
pub use select::{Amount, Reserve, ReserveBy, Select};
pub use trigger::Trigger;

/// At which rotary position a new token stands after evictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PositionMode {
    /// At its place in the whole sequence; kept keys are left as they are.
    Logical,
    /// At the number of tokens held, while kept keys are left as they are: every eviction turns new tokens back, so that
    /// kept keys seem to lie in their future. Only for reproducing runs that were made so.
    Rewound,
    /// At the number of tokens held, with the kept keys moved up: the `i`-th token held stands at `i`, its key rotated
    /// from one stored original.
    Compacted,
}

/// A composition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What a token is worth.
    pub score: ScoreRef,
    /// What is kept whatever it scores.
    pub protect: Protect,
    /// How the budget is divided among the kept sets.
    pub allocate: Allocate,
    /// How the kept tokens are chosen.
    pub select: Select,
    /// When tokens are evicted.
    pub trigger: Trigger,
    /// What a step reads of what is held.
    pub read: Read,
    /// Who shares one kept set.
    pub scope: Scope,
    /// Where new tokens stand.
    pub position: PositionMode,
    /// In which numbers keys and values are kept.
    pub cache: CacheNumbers,
    /// Which draws, for a policy that draws: another seed is another run of the same policy.
    pub seed: u32,
}

impl Policy {
    /// Whether it ever evicts.
    pub fn evicts(&self) -> bool {
        self.trigger != Trigger::Never
    }

    /// Whether a budget means anything to it: it evicts, or reads a part of what is held.
    pub fn has_budget(&self) -> bool {
        self.evicts() || !self.read.is_all()
    }

    /// Whether it draws random numbers, so that another seed gives another run.
    pub fn draws(&self) -> bool {
        (self.has_budget() && (self.score.needs(Need::RandomNumbers) || self.select.draw))
            || matches!(self.cache, CacheNumbers::Jitter(_))
    }

    /// Checks that its parts fit one another.
    ///
    /// # Errors
    /// A selection that the score does not fit, or a budget that is divided although there is one kept set.
    pub fn check(&self) -> Result<()> {
        let Self { score, select, allocate, scope, .. } = *self;
        if select.draw && !score.is_weight() {
            let expected = "is a weight and never below zero";
            return Err(Error::SelectOf { select: select.to_string(), expected, score: score.to_string() });
        }
        if !allocate.is_even() && scope == Scope::Global {
            return Err(Error::AllocateOf { allocate: allocate.to_string() });
        }
        self.check_that_parts_do_something()
    }

    /// Refuses the parts that would be accepted and change nothing.
    fn check_that_parts_do_something(&self) -> Result<()> {
        let nothing = |part: String, reason: String| Err(Error::PartDoesNothing { part, reason });
        if self.seed != 0 && !self.draws() {
            return nothing(format!("seed={}", self.seed), "nothing is drawn".to_owned());
        }
        let one_number = !self.score.is_by_set() && self.select.by_score();
        if self.scope != Scope::Global && one_number && self.allocate.is_even() && self.read.is_all() {
            let reason = format!("the score {} has one number a token, the same in each kept set", self.score);
            return nothing(format!("scope={}", scope_name(self.scope)), reason);
        }
        if !self.has_budget() {
            let full = registry::COMMON.parts();
            let idle = ["score", "protect", "allocate", "select", "scope", "position"];
            let mut given = self.parts().into_iter().zip(full);
            let other = given.find(|((name, value), (_, of_full))| idle.contains(name) && value != of_full);
            if let Some(((name, value), _)) = other {
                return nothing(format!("{name}={value}"), "trigger=never evicts nothing".to_owned());
            }
        }
        Ok(())
    }

    /// The parts by name, as the command line writes them.
    pub(crate) fn parts(&self) -> [(&'static str, String); 10] {
        let Self { score, protect, allocate, select, trigger, read, scope, position, cache, seed } = self;
        [
            ("score", score.to_string()),
            ("protect", protect.to_string()),
            ("allocate", allocate.to_string()),
            ("select", select.to_string()),
            ("trigger", trigger.to_string()),
            ("read", read.to_string()),
            ("scope", scope_name(*scope).to_owned()),
            ("position", position.to_string()),
            ("cache", cache.to_string()),
            ("seed", seed.to_string()),
        ]
    }

    /// The keys of the numbers that it draws, from those of a generation.
    pub(crate) fn stream(&self, of: RandomStream) -> RandomStream {
        RandomStream { seed: of.seed ^ u64::from(self.seed).rotate_left(40), ..of }
    }
}

impl PositionMode {
    /// What a cache does with the rotation of its keys.
    pub fn rotation(self) -> Rotation {
        match self {
            Self::Logical => Rotation::Position,
            Self::Rewound => Rotation::Retained,
            Self::Compacted => Rotation::Compacted,
        }
    }
}

impl fmt::Display for PositionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Logical => "logical",
            Self::Rewound => "rewound",
            Self::Compacted => "compacted",
        })
    }
}

/// Name of a scope on the command line.
pub(crate) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Global => "global",
        Scope::PerLayer => "per-layer",
        Scope::PerHead => "per-head",
    }
}

impl fmt::Display for Policy {
    /// The parts as the command line writes them, without `allocate=even` and `read=all`: files that were written before
    /// there was anything else do not have them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_written = |name: &str| match name {
            "allocate" => !self.allocate.is_even(),
            "read" => !self.read.is_all(),
            _ => true,
        };
        let parts = self.parts().into_iter().filter(|(name, _)| is_written(name));
        let parts: Vec<String> = parts.map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&parts.join(";"))
    }
}
