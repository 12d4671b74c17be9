//! What a budget means for one prompt: how many tokens each kept set may hold, and which it must.

use crate::error::{Error, Result};
use crate::policy::allocate::{Allocate, Division, Sets};
use crate::policy::protect::{Protect, Protected, Recency};

/// Most tokens that recency protects.
const MAX_RECENCY: usize = 128;

/// A budget that has been checked against one prompt and one protection.
///
/// It holds a budget for each kept set; all are equal until the budget is divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// `K`: what a kept set may hold on average.
    tokens: usize,
    /// What each kept set may hold; one number where all may hold the same.
    budgets: Vec<usize>,
    n_prompt: usize,
    n_first: usize,
    sinks: usize,
    recency: usize,
}

impl Limits {
    /// Checks a budget of `tokens` against a prompt and what is protected.
    ///
    /// # Errors
    /// If the protected tokens exceed it; the error says which budget would do.
    pub fn new(tokens: usize, n_prompt: usize, protect: Protect) -> Result<Self> {
        let n_first = if protect.prompt { n_prompt.max(protect.sinks) } else { protect.sinks };
        let (recency, smallest) = match protect.recency {
            Recency::None => (0, n_first),
            Recency::Budget => (MAX_RECENCY.min(tokens / 4), smallest_feasible(n_first)),
            Recency::Tokens(recency) => (recency, n_first.saturating_add(recency)),
            Recency::Percent(percent) => (share(tokens, percent), smallest_with_share(n_first, percent)),
        };
        if tokens < smallest.max(1) {
            return Err(Error::Infeasible { budget: tokens, n_first, recency, smallest: smallest.max(1) });
        }
        Ok(Self { tokens, budgets: vec![tokens], n_prompt, n_first, sinks: protect.sinks, recency })
    }

    /// For a policy that evicts nothing: no budget at all.
    pub fn unlimited(n_prompt: usize) -> Self {
        Self { tokens: usize::MAX, budgets: vec![usize::MAX], n_prompt, n_first: n_prompt, sinks: 0, recency: 0 }
    }

    /// The same limits with the budget divided among the kept sets.
    ///
    /// # Errors
    /// If the division does not keep to the budget.
    pub(crate) fn divided(&self, allocate: Allocate, sets: Sets, scores: Option<&[Vec<f32>]>) -> Result<Self> {
        let division = Division { even: self.tokens, least: self.n_first + self.recency, sets, scores };
        Ok(Self { budgets: allocate.budgets(&division)?, ..self.clone() })
    }

    /// Tokens that a kept set may hold after an eviction on average, `K`.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Tokens that one kept set may hold after an eviction.
    pub fn of(&self, set: usize) -> usize {
        self.budgets.get(set).or(self.budgets.last()).copied().unwrap_or(self.tokens)
    }

    /// Tokens of the prompt.
    pub fn n_prompt(&self) -> usize {
        self.n_prompt
    }

    /// First tokens that are protected: the prompt, the sinks, or none.
    pub fn n_first(&self) -> usize {
        self.n_first
    }

    /// Sinks among the first tokens, whether or not the prompt is protected too.
    pub(crate) fn sinks(&self) -> usize {
        self.sinks
    }

    /// Tokens of a kept set that are not protected.
    pub(crate) fn room(&self, set: usize) -> usize {
        self.of(set).saturating_sub(self.n_first + self.recency)
    }

    /// Newest tokens that are protected.
    pub fn recency(&self) -> usize {
        self.recency
    }

    /// The positions that are protected.
    pub(crate) fn protected(&self) -> Protected {
        Protected { n_first: self.n_first as u32, recency: self.recency as u32 }
    }
}

/// So many percent of `tokens`, rounded down.
fn share(tokens: usize, percent: u8) -> usize {
    (tokens as u128 * u128::from(percent) / 100) as usize
}

/// The smallest `K` with `K - floor(K percent / 100) >= n_first`, which is `ceil(K (100 - percent) / 100) >= n_first`.
fn smallest_with_share(n_first: usize, percent: u8) -> usize {
    let Some(below) = n_first.checked_sub(1) else { return 0 };
    // percent is below 100.
    let smallest = below as u128 * 100 / u128::from(100 - percent.min(99)) + 1;
    usize::try_from(smallest).unwrap_or(usize::MAX)
}

/// The smallest `K` with `K - min(128, floor(K/4)) >= n_first`, which is `max(K - 128, ceil(3K/4)) >= n_first`.
fn smallest_feasible(n_first: usize) -> usize {
    let by_quarter = n_first.checked_sub(1).map_or(0, |below| below.saturating_mul(4) / 3 + 1);
    by_quarter.min(n_first.saturating_add(MAX_RECENCY))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Protect = Protect { prompt: true, sinks: 0, recency: Recency::Budget };

    #[test]
    fn recency_is_a_quarter_and_at_most_128() {
        for (tokens, recency) in [(3, 0), (4, 1), (100, 25), (512, 128), (4096, 128)] {
            assert_eq!(Limits::new(tokens, 1, USUAL).expect("feasible").recency(), recency);
        }
    }

    #[test]
    fn the_smallest_feasible_budget_is_feasible_and_the_next_smaller_is_not() {
        for n_prompt in 1..1200 {
            let smallest = smallest_feasible(n_prompt);
            assert!(Limits::new(smallest, n_prompt, USUAL).is_ok(), "{n_prompt}");
            assert!(Limits::new(smallest - 1, n_prompt, USUAL).is_err(), "{n_prompt}");
        }
        for percent in [1, 33, 50, 99] {
            let protect = Protect { recency: Recency::Percent(percent), ..USUAL };
            for n_prompt in 1..300 {
                let smallest = smallest_with_share(n_prompt, percent);
                assert!(Limits::new(smallest, n_prompt, protect).is_ok(), "{n_prompt} {percent}");
                assert!(Limits::new(smallest - 1, n_prompt, protect).is_err(), "{n_prompt} {percent}");
                let limits = Limits::new(smallest, n_prompt, protect).expect("feasible");
                assert!(limits.n_first() + limits.recency() <= smallest);
            }
        }
        let error = Limits::new(100, 80, USUAL).expect_err("80 + 25 > 100");
        assert_eq!(
            error.to_string(),
            "budget of 100 tokens is too small: 80 first + 25 recent > 100; expected at least 106"
        );
    }

    #[test]
    fn what_is_not_protected_needs_no_room() {
        let sinks = Protect { prompt: false, sinks: 4, recency: Recency::Budget };
        let limits = Limits::new(20, 500, sinks).expect("4 + 5 tokens fit");
        assert_eq!((limits.n_first(), limits.recency(), limits.n_prompt()), (4, 5, 500));
        assert!(Limits::new(4, 500, sinks).is_err(), "4 + 1 tokens do not");
        assert!(Limits::new(5, 500, sinks).is_ok());
        let fixed = Protect { prompt: true, sinks: 4, recency: Recency::Tokens(24) };
        let error = Limits::new(63, 40, fixed).expect_err("40 + 24");
        assert!(matches!(error, Error::Infeasible { n_first: 40, recency: 24, smallest: 64, .. }));
        let nothing = Protect { prompt: false, sinks: 0, recency: Recency::None };
        assert!(Limits::new(1, 500, nothing).is_ok() && Limits::new(0, 500, nothing).is_err());
    }
}
