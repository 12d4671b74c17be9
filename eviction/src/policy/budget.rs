//! Budgets: how many tokens a layer may keep, as typed and for one prompt.
//!
//! A budget counts everything: prompt, recent and selected tokens. It must hold what the policy protects; with the usual
//! protection, of prompt and the newest `min(128, floor(K/4))` tokens:
//!
//! ```text
//! K >= n_prompt + min(128, floor(K/4))
//! ```

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, MOST_IN_BUDGET, Result};
use crate::policy::limits::Limits;
use crate::policy::{Policy, Protect, Trigger};

/// A budget as it is asked for: `128`, `prompt+32` or `prompt+25%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Budget {
    /// So many tokens.
    Tokens(usize),
    /// The prompt and so many tokens.
    PromptPlus(usize),
    /// The prompt and a percentage, rounded up, of the tokens that the same problem takes without eviction.
    PromptPercent(usize),
}

epikv_words::words! {
    /// Which resident size of a layer the budget is.
    ///
    /// A policy that evicts at once holds `K` after every step. One that waits, for `B` tokens over or for the `B`-th step,
    /// holds up to `K + B - 1`, so at the same `K` it has more to look at.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Match {
        /// Tokens held after an eviction.
        #[default]
        Steady = "steady",
        /// Mean of the tokens held between two evictions.
        ///
        /// Rounded down.
        Mean = "mean",
        /// Most tokens held after a step.
        Peak = "peak",
    }
}

impl Match {
    /// The tokens that a layer may hold after an eviction, so that the matched size is `tokens`; `None` where waiting
    /// alone takes more than that, or has no end.
    pub fn after_eviction(self, tokens: usize, trigger: Trigger) -> Option<usize> {
        let slack = trigger.slack();
        let less = match self {
            Self::Steady => 0,
            _ if slack == usize::MAX => return None,
            Self::Mean => slack.div_ceil(2),
            Self::Peak => slack,
        };
        tokens.checked_sub(less).filter(|&n| n > 0)
    }
}

/// Lengths that a relative budget refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// Tokens of the prompt.
    pub n_prompt: usize,
    /// Tokens generated without eviction; `None` where that is not known.
    pub n_generated: Option<usize>,
}

impl Budget {
    /// The budget in tokens for one prompt.
    ///
    /// # Errors
    /// If it refers to a length that is not known.
    pub fn tokens(self, lengths: Lengths) -> Result<usize> {
        Ok(match self {
            Self::Tokens(tokens) => tokens,
            Self::PromptPlus(more) => lengths.n_prompt.saturating_add(more),
            Self::PromptPercent(percent) => {
                let n = lengths.n_generated.ok_or(Error::UnknownLength { budget: self.to_string() })?;
                lengths.n_prompt.saturating_add(n.saturating_mul(percent).div_ceil(100))
            }
        })
    }

    /// What the budget means for one prompt under a protection.
    ///
    /// # Errors
    /// If it has no room for what is protected, or refers to a length that is not known.
    pub fn limits(self, lengths: Lengths, protect: Protect) -> Result<Limits> {
        Limits::new(self.tokens(lengths)?, lengths.n_prompt, protect)
    }

    /// What the budget means for one prompt under a policy, where `matched` is the size that it speaks of.
    ///
    /// # Errors
    /// As [`Budget::limits`], or if waiting for the next eviction takes more than the budget, or the reserve more than what
    /// is not protected.
    pub fn limits_of(self, lengths: Lengths, policy: &Policy, matched: Match) -> Result<Limits> {
        let tokens = self.tokens(lengths)?;
        let after = matched.after_eviction(tokens, policy.trigger);
        let unmatched =
            || Error::Unmatched { budget: tokens, trigger: policy.trigger.to_string(), matched: matched.to_string() };
        let limits = Limits::new(after.ok_or_else(unmatched)?, lengths.n_prompt, policy.protect);
        let limits = limits.map_err(|error| match error {
            // In terms of what was asked for.
            Error::Infeasible { budget, n_first, recency, smallest } => {
                Error::Infeasible { budget, n_first, recency, smallest: smallest + (tokens - budget) }
            }
            error => error,
        })?;
        policy.select.check(&limits)?;
        Ok(limits)
    }

    /// Whether it refers to the length of the generation without eviction.
    pub fn needs_full(self) -> bool {
        matches!(self, Self::PromptPercent(_))
    }
}

impl FromStr for Budget {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten().filter(|n| *n <= MOST_IN_BUDGET)
        };
        let parsed = match text.strip_prefix("prompt+") {
            None => number(text).filter(|&n| n > 0).map(Self::Tokens),
            Some(more) => match more.strip_suffix('%') {
                None => number(more).map(Self::PromptPlus),
                Some(percent) => number(percent).map(Self::PromptPercent),
            },
        };
        parsed.ok_or_else(|| Error::BudgetForm { given: text.to_owned() })
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens(tokens) => write!(f, "{tokens}"),
            Self::PromptPlus(more) => write!(f, "prompt+{more}"),
            Self::PromptPercent(percent) => write!(f, "prompt+{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Recency;

    const USUAL: Protect = Protect { prompt: true, sinks: 0, recency: Recency::Budget };

    fn resolved(text: &str, n_prompt: usize, n_generated: Option<usize>) -> Result<usize> {
        Ok(text.parse::<Budget>()?.limits(Lengths { n_prompt, n_generated }, USUAL)?.tokens())
    }

    #[test]
    fn the_three_forms() {
        for text in ["128", "prompt+32", "prompt+25%"] {
            assert_eq!(text.parse::<Budget>().expect("a known form").to_string(), text);
        }
        assert_eq!(resolved("128", 50, None).expect("feasible"), 128);
        assert_eq!(resolved("prompt+32", 50, None).expect("feasible"), 82);
        assert_eq!(resolved("prompt+25%", 50, Some(201)).expect("feasible"), 101, "rounded up");
        for text in ["", "0", "-3", "+3", "1.5", "prompt", "prompt+", "prompt+%", "prompt+1.5%", "prompt-3", "12 "] {
            assert!(matches!(text.parse::<Budget>(), Err(Error::BudgetForm { .. })), "{text}");
        }
        for text in ["16777217", "prompt+99999999999999999999", "prompt+18446744073709551615%"] {
            let error = text.parse::<Budget>().expect_err(text).to_string();
            assert!(error.contains("from 1 to 16777216") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_share_of_an_unknown_length_is_an_error() {
        let error = resolved("prompt+25%", 50, None).expect_err("no length");
        assert_eq!(
            error.to_string(),
            "budget prompt+25%: expected the length of the generation without eviction, got none"
        );
    }

    #[test]
    fn a_policy_that_waits_gets_less_where_the_peak_is_matched() {
        let waits = Trigger::Buffer(17);
        for (matched, tokens) in [(Match::Steady, 100), (Match::Mean, 92), (Match::Peak, 84)] {
            assert_eq!(matched.after_eviction(100, waits), Some(tokens), "{matched}");
            assert_eq!(matched.after_eviction(100, Trigger::Each), Some(100), "{matched}");
        }
        assert_eq!(Match::Peak.after_eviction(16, waits), None, "the buffer alone has 16");
        assert_eq!(Match::Mean.after_eviction(100, Trigger::Prefill), None);
        assert_eq!(Match::Steady.after_eviction(100, Trigger::Prefill), Some(100));
    }
}
