//! When tokens are evicted.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::policy::forms::{number, wrong};
use crate::policy::limits::Limits;

/// The values of the part.
pub(crate) const FORMS: &str =
    "never, each, every(N) generated tokens, buffer(N) tokens over the budget, prefill; N up to 1048576";

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

/// What a trigger sees of a step: the tokens were fed, and nothing was evicted since.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Ids of the tokens that the step fed.
    pub ids: &'a [u32],
    /// Whether more of the prompt is to come. Nothing is evicted then, whatever the trigger says.
    pub is_reading: bool,
    /// Generated tokens fed so far, those of the step included.
    pub n_generated: usize,
    /// Tokens that each kept set holds.
    pub held: &'a [usize],
    /// Tokens that each kept set may hold.
    pub limits: &'a Limits,
}

impl Step<'_> {
    /// Tokens that a kept set holds beyond its budget.
    pub fn over(&self, set: usize) -> usize {
        self.held[set].saturating_sub(self.limits.of(set))
    }

    /// Most tokens that a kept set holds beyond its budget.
    pub fn most_over(&self) -> usize {
        (0..self.held.len()).map(|set| self.over(set)).max().unwrap_or(0)
    }
}

/// A trigger in one generation. What it must remember of earlier steps is its own.
pub trait TriggerState: fmt::Debug + Send {
    /// Whether the kept sets are cut to their budgets after this step. It is asked after every step in order, those that
    /// read the prompt included.
    fn due(&mut self, step: &Step<'_>) -> bool;
}

/// The triggers of the command line need to remember nothing.
impl TriggerState for Trigger {
    fn due(&mut self, step: &Step<'_>) -> bool {
        match self {
            Self::Never => false,
            Self::Each => true,
            Self::Every(steps) => step.n_generated.is_multiple_of((*steps).max(1)),
            Self::Buffer(tokens) => step.most_over() >= *tokens,
            Self::Prefill => step.n_generated == 0,
        }
    }
}

impl Trigger {
    /// The trigger at the start of a generation.
    pub fn start(self) -> Box<dyn TriggerState> {
        Box::new(self)
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

impl FromStr for Trigger {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "never" => Ok(Self::Never),
            "each" => Ok(Self::Each),
            "prefill" => Ok(Self::Prefill),
            _ => {
                let counted = |name| number(text, name).filter(|n| (1..=1 << 20).contains(n));
                match (counted("every"), counted("buffer")) {
                    // One trigger has one name.
                    (Some(1), _) | (_, Some(1)) => Ok(Self::Each),
                    (Some(steps), _) => Ok(Self::Every(steps)),
                    (_, Some(tokens)) => Ok(Self::Buffer(tokens)),
                    (None, None) => Err(wrong("trigger", FORMS, text)),
                }
            }
        }
    }
}
