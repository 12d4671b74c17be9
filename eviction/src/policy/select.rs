//! What a policy protects in one generation, and the slow and obvious selection that the fast ones are tested against.

use epikv_model::cache::{Pos, SlotMap};

use crate::policy::budget::Limits;

/// Protected positions: the first so many, and the newest so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Protected {
    /// Positions below are protected.
    pub(crate) n_first: u32,
    /// So many of the newest positions are protected.
    pub(crate) recency: u32,
}

impl Protected {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { n_first: limits.n_first() as u32, recency: limits.recency() as u32 }
    }

    /// Whether the token at `pos` is protected while `newest` is the latest position fed.
    pub(crate) fn contains(self, pos: Pos, newest: Pos) -> bool {
        pos.0 < self.n_first || pos.0 + self.recency > newest.0
    }

    /// The places, in the order of positions, of the tokens that are not protected among `n` held. All protected tokens are
    /// held, so they are the first and the last.
    pub(crate) fn candidates(self, n: usize) -> std::ops::Range<usize> {
        let from = (self.n_first as usize).min(n);
        from..n.saturating_sub(self.recency as usize).max(from)
    }

    /// How many tokens are protected when `newest` is the latest position fed.
    pub(crate) fn len(self, newest: Pos) -> usize {
        let fed = newest.0 + 1;
        let first = self.n_first.min(fed);
        (first + self.recency.min(fed - first)) as usize
    }

    /// Protected positions that a kept set lacks.
    ///
    /// Positions ascend and are distinct, so all of `0..n` are there if and only if the `n`-th is `n - 1`, and likewise
    /// from the end: two look-ups, and a count only where something is missing.
    pub(crate) fn n_missing(self, set: &SlotMap, newest: Pos) -> usize {
        let fed = newest.0 + 1;
        let (first, recent) = (self.n_first.min(fed), self.recency.min(fed));
        let first_there = first == 0 || set.nth(first as usize - 1) == Some(Pos(first - 1));
        let oldest_recent = set.len().checked_sub(recent as usize).and_then(|place| set.nth(place));
        if first_there && (recent == 0 || oldest_recent == Some(Pos(fed - recent))) {
            return 0;
        }
        self.len(newest) - set.positions().filter(|&pos| self.contains(pos, newest)).count()
    }
}

/// The positions that stay of `held`, which ascends: the protected ones and, as far as the budget reaches, the selected.
#[cfg(test)]
pub(crate) fn kept(held: &[Pos], score: impl Fn(Pos) -> f32, protected: Protected, budget: usize) -> Option<Vec<Pos>> {
    use epikv_stats::{Ties, top_k};

    let newest = *held.last()?;
    let (mut stay, others): (Vec<Pos>, Vec<Pos>) = held.iter().partition(|&&pos| protected.contains(pos, newest));
    let scores: Vec<f32> = others.iter().map(|&pos| score(pos)).collect();
    let chosen = top_k(&scores, budget.saturating_sub(stay.len()), Ties::Newer)?;
    stay.extend(chosen.into_iter().map(|i| others[i]));
    stay.sort_unstable();
    Some(stay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Protect, Recency};

    fn limits(tokens: usize, n_prompt: usize) -> Limits {
        let usual = Protect { prompt: true, sinks: 0, recency: Recency::Budget };
        Limits::new(tokens, n_prompt, usual).expect("feasible")
    }

    fn stays(held: &[u32], scores: &[f32], limits: Limits) -> Option<Vec<u32>> {
        let held: Vec<Pos> = held.iter().map(|&p| Pos(p)).collect();
        let kept = kept(&held, |pos| scores[pos.0 as usize], Protected::new(limits), limits.tokens())?;
        Some(kept.iter().map(|p| p.0).collect())
    }

    #[test]
    fn the_best_of_what_is_not_protected_stay() {
        // Budget 8: prompt 0 and 1, recency 2 (9 and 10), so four of 2..=8.
        let scores = [0.0, 0.0, 5.0, 1.0, 4.0, 2.0, 3.0, 0.0, 9.0, -1.0, -1.0];
        let all: Vec<u32> = (0..=10).collect();
        assert_eq!(stays(&all, &scores, limits(8, 2)), Some(vec![0, 1, 2, 4, 6, 8, 9, 10]));
    }

    #[test]
    fn among_equals_the_newer_stay() {
        let held = [0, 1, 3, 4, 6, 7, 8, 9, 10];
        assert_eq!(stays(&held, &[1.0; 11], limits(8, 2)), Some(vec![0, 1, 4, 6, 7, 8, 9, 10]));
    }

    #[test]
    fn protected_tokens_are_counted_as_they_are_found() {
        for (n_first, recency) in [(6, 5), (6, 0), (0, 5), (0, 0)] {
            let protected = Protected { n_first, recency };
            for newest in 0..40 {
                let found = (0..=newest).filter(|&p| protected.contains(Pos(p), Pos(newest))).count();
                assert_eq!(found, protected.len(Pos(newest)), "{protected:?} at {newest}");
            }
        }
    }
}
