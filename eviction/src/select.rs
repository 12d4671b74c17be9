//! Which positions stay.

use epikv_model::cache::Pos;
use epikv_stats::{Ties, top_k};

use crate::budget::Limits;
use crate::policy::{Protect, Select};

/// What a policy protects in one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Protected {
    /// Positions below are protected.
    n_prompt: u32,
    /// So many of the newest positions are protected.
    recency: u32,
}

impl Protected {
    pub(crate) fn new(protect: Protect, limits: Limits) -> Self {
        let or_none = |on: bool, n: usize| if on { n as u32 } else { 0 };
        Self {
            n_prompt: or_none(protect.prompt, limits.n_prompt()),
            recency: or_none(protect.recency, limits.recency()),
        }
    }

    /// Whether the token at `pos` is protected while `newest` is the latest position fed.
    pub(crate) fn contains(self, pos: Pos, newest: Pos) -> bool {
        pos.0 < self.n_prompt || pos.0 + self.recency > newest.0
    }

    /// How many tokens are protected when `newest` is the latest position fed.
    pub(crate) fn len(self, newest: Pos) -> usize {
        let fed = newest.0 + 1;
        let prompt = self.n_prompt.min(fed);
        (prompt + self.recency.min(fed - prompt)) as usize
    }
}

/// The positions that stay of `held`, which ascends: the protected ones and, as far as the budget reaches, the selected.
///
/// Undefined (`None`) when a score is `NaN`.
pub(crate) fn kept(
    held: &[Pos],
    score: impl Fn(Pos) -> f32,
    protected: Protected,
    select: Select,
    budget: usize,
) -> Option<Vec<Pos>> {
    let newest = *held.last()?;
    let (mut stay, others): (Vec<Pos>, Vec<Pos>) = held.iter().partition(|&&pos| protected.contains(pos, newest));
    let scores: Vec<f32> = others.iter().map(|&pos| score(pos)).collect();
    let room = budget.saturating_sub(stay.len());
    let chosen = match select {
        Select::TopK => top_k(&scores, room, Ties::Newer)?,
    };
    stay.extend(chosen.into_iter().map(|i| others[i]));
    stay.sort_unstable();
    Some(stay)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stays(held: &[u32], scores: &[f32], limits: Limits) -> Option<Vec<u32>> {
        let held: Vec<Pos> = held.iter().map(|&p| Pos(p)).collect();
        let protected = Protected::new(Protect { prompt: true, recency: true }, limits);
        let kept = kept(&held, |pos| scores[pos.0 as usize], protected, Select::TopK, limits.tokens())?;
        Some(kept.iter().map(|p| p.0).collect())
    }

    #[test]
    fn the_best_of_what_is_not_protected_stay() {
        // Budget 8: prompt 0 and 1, recency 2 (9 and 10), so four of 2..=8.
        let limits = Limits::new(8, 2).expect("feasible");
        let scores = [0.0, 0.0, 5.0, 1.0, 4.0, 2.0, 3.0, 0.0, 9.0, -1.0, -1.0];
        let all: Vec<u32> = (0..=10).collect();
        assert_eq!(stays(&all, &scores, limits), Some(vec![0, 1, 2, 4, 6, 8, 9, 10]));
    }

    #[test]
    fn among_equals_the_newer_stay() {
        let limits = Limits::new(8, 2).expect("feasible");
        assert_eq!(stays(&[0, 1, 3, 4, 6, 7, 8, 9, 10], &[1.0; 11], limits), Some(vec![0, 1, 4, 6, 7, 8, 9, 10]));
        let mut scores = [1.0; 11];
        scores[4] = f32::NAN;
        assert_eq!(stays(&[0, 1, 3, 4, 6, 7, 8, 9, 10], &scores, limits), None);
    }

    #[test]
    fn protected_tokens_are_counted_as_they_are_found() {
        let limits = Limits::new(20, 6).expect("feasible");
        for protect in [(true, true), (true, false), (false, true), (false, false)] {
            let protected = Protected::new(Protect { prompt: protect.0, recency: protect.1 }, limits);
            for newest in 0..40 {
                let found = (0..=newest).filter(|&p| protected.contains(Pos(p), Pos(newest))).count();
                assert_eq!(found, protected.len(Pos(newest)), "{protect:?} at {newest}");
            }
        }
    }
}
