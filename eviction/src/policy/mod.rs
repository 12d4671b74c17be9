//! A policy: a few small parts. Swapping one and keeping the others is the controlled experiment.

pub(crate) mod budget;
pub(crate) mod chosen_layers;
pub(crate) mod page;
pub(crate) mod parse;
pub(crate) mod registry;
pub(crate) mod select;

use std::fmt;

pub use epikv_model::cache::Precision as CacheNumbers;
use epikv_model::cache::{Rotation, Scope};
use epikv_model::sampler::RandomStream;

use epikv_signals::{Need, ScoreRef};

/// What is kept whatever it scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protect {
    /// The prompt.
    pub prompt: bool,
    /// So many of the first tokens.
    pub sinks: usize,
    /// The newest tokens.
    pub recency: Recency,
}

/// How many of the newest tokens are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recency {
    /// None.
    None,
    /// As many as the budget says: `min(128, floor(K/4))`.
    Budget,
    /// So many.
    Tokens(usize),
}

/// How the kept tokens are chosen among those that are not protected.
///
/// First those of the largest value range, so many percent of the budget less the protected first tokens; then by score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Select {
    /// Drawn without replacement with a chance in proportion to the score; else the highest scores, among equals the newer
    /// token. A score of zero is drawn last.
    pub draw: bool,
    /// Percent of the budget that is kept for the largest value ranges.
    pub values: u8,
}

impl Select {
    /// The highest scores.
    pub const TOP_K: Self = Self { draw: false, values: 0 };

    /// Whether a score decides alone.
    pub(crate) fn by_score(self) -> bool {
        self == Self::TOP_K
    }
}

/// When tokens are evicted. Always after a step, never inside a pass, and never before the whole prompt has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// Never.
    Never,
    /// After each step that leaves more tokens than the budget.
    Each,
    /// After every so many generated tokens, if more than the budget is held.
    Every(usize),
    /// When so many tokens more than the budget are held, the buffer of `VaSE`: `K`, then up to `K + B`, then `K` again.
    Buffer(usize),
    /// Once, when the prompt has been read. What is generated later stays.
    Prefill,
}

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
    /// How the kept tokens are chosen.
    pub select: Select,
    /// When tokens are evicted.
    pub trigger: Trigger,
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
    /// Whether it ever evicts; one that does not has no budget.
    pub fn evicts(&self) -> bool {
        self.trigger != Trigger::Never
    }

    /// Whether it draws random numbers, so that another seed gives another run.
    pub fn draws(&self) -> bool {
        (self.evicts() && (self.score.needs(Need::RandomNumbers) || self.select.draw))
            || matches!(self.cache, CacheNumbers::Jitter(_))
    }

    /// The keys of the numbers that it draws, from those of a generation.
    pub(crate) fn stream(&self, of: RandomStream) -> RandomStream {
        RandomStream { seed: of.seed ^ u64::from(self.seed).rotate_left(40), ..of }
    }
}

impl Trigger {
    /// Whether a layer that holds `held` tokens after `n_fed` generated ones evicts down to `budget`.
    pub(crate) fn fires(self, held: usize, budget: usize, n_fed: usize) -> bool {
        let over = held.saturating_sub(budget);
        over > 0
            && match self {
                Self::Never => false,
                Self::Each => true,
                Self::Every(steps) => n_fed.is_multiple_of(steps.max(1)),
                Self::Buffer(tokens) => over >= tokens,
                Self::Prefill => n_fed == 0,
            }
    }

    /// Tokens beyond the budget that it lets a layer hold after a step.
    pub(crate) fn slack(self) -> usize {
        match self {
            Self::Never | Self::Each => 0,
            Self::Every(tokens) | Self::Buffer(tokens) => tokens.saturating_sub(1),
            Self::Prefill => usize::MAX,
        }
    }
}

impl PositionMode {
    pub(crate) fn rotation(self) -> Rotation {
        match self {
            Self::Logical => Rotation::Position,
            Self::Rewound => Rotation::Retained,
            Self::Compacted => Rotation::Compacted,
        }
    }
}

impl fmt::Display for Protect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recency = match self.recency {
            Recency::None => None,
            Recency::Budget => Some("recency".to_owned()),
            Recency::Tokens(tokens) => Some(format!("recency({tokens})")),
        };
        let sinks = (self.sinks > 0).then(|| format!("sinks({})", self.sinks));
        let parts: Vec<String> =
            self.prompt.then(|| "prompt".to_owned()).into_iter().chain(sinks).chain(recency).collect();
        f.write_str(&if parts.is_empty() { "nothing".to_owned() } else { parts.join("+") })
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.draw { "draw" } else { "top-k" })?;
        if self.values == 0 { Ok(()) } else { write!(f, "+values({}%)", self.values) }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Each => f.write_str("each"),
            Self::Every(steps) => write!(f, "every({steps})"),
            Self::Buffer(tokens) => write!(f, "buffer({tokens})"),
            Self::Prefill => f.write_str("prefill"),
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
    /// The parts as the command line writes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { score, protect, select, trigger, position, cache, seed, .. } = self;
        let scope = scope_name(self.scope);
        write!(f, "score={score};protect={protect};select={select};trigger={trigger};scope={scope};")?;
        write!(f, "position={position};cache={cache};seed={seed}")
    }
}
