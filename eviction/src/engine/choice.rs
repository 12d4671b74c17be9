//! Selections other than the highest scores: how they rank the tokens that are not protected.
//!
//! ```text
//! draw      rank(j) = s(j) / E(j)      E(j) exponential with mean 1, one for each token, kept set and eviction
//! values    rank(j) = infinity         for the tokens of the largest value range that the reserve has room for
//! ```
//!
//! Keeping the largest `s / E` draws without replacement, each time in proportion to the scores of what is left.
//!
//! # References
//! Efraimidis & Spirakis 2006 (weighted sampling with a reservoir); the reserve is that of `VaSE` (arXiv 2606.03928).

use std::ops::Range;

use epikv_model::cache::RowCache;
use epikv_model::sampler::RandomStream;
use epikv_signals::value_ranges;
use epikv_stats::{Ties, top_k};

use crate::error::Result;
use crate::policy::Select;
use crate::policy::limits::Limits;

/// Keeps the numbers of draws apart from those that choose tokens and from random scores, which have the same keys.
const STREAM: u64 = 0x6472_6177_206f_6e65;

/// A selection in one generation.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    select: Select,
    stream: RandomStream,
}

impl Choice {
    /// A selection that has drawn nothing yet.
    pub fn new(select: Select, stream: RandomStream) -> Self {
        Self { select, stream: RandomStream { seed: stream.seed ^ STREAM, ..stream } }
    }

    /// Tokens of a kept set that are kept for their value range.
    pub fn reserve(self, limits: &Limits, set: usize) -> usize {
        let share = limits.of(set).saturating_mul(usize::from(self.select.values)) / 100;
        share.saturating_sub(limits.n_first())
    }

    /// Turns the scores of all kept sets into ranks; higher is kept.
    ///
    /// # Errors
    /// If the values are not on the CPU.
    pub(crate) fn rank(self, scores: &mut [Vec<f32>], cache: &RowCache, limits: &Limits) -> Result<()> {
        if self.select.by_score() {
            return Ok(());
        }
        let ranges = if self.select.values == 0 { Vec::new() } else { value_ranges(cache)? };
        let eviction = cache.last().map_or(0, |newest| newest.0 as usize) * scores.len();
        for (set, scores) in scores.iter_mut().enumerate() {
            let candidates = limits.protected().candidates(scores.len());
            let slots = &cache.sets()[set];
            // One number a token, kept set and eviction: positions are 32 bits.
            let exponential = |place: usize| {
                let pos = slots.nth(place).map_or(0, |pos| pos.0 as usize);
                -(1.0 - self.stream.uniform(((eviction + set) << 32) | pos)).ln()
            };
            let ranges = ranges.get(set).map_or(&[][..], Vec::as_slice);
            self.rank_set(scores, ranges, self.reserve(limits, set), candidates, exponential);
        }
        Ok(())
    }

    /// The same for one kept set, with value ranges where there is a reserve of so many tokens.
    pub fn rank_set(
        self,
        scores: &mut [f32],
        ranges: &[f32],
        reserve: usize,
        candidates: Range<usize>,
        exponential: impl Fn(usize) -> f64,
    ) {
        if self.select.draw {
            let own = scores[candidates.clone()].iter_mut().zip(candidates.clone());
            for (score, place) in own.filter(|(score, _)| score.is_finite()) {
                *score = (f64::from(score.max(0.0)) / exponential(place).max(f64::MIN_POSITIVE)) as f32;
            }
        }
        let reserved = ranges.get(candidates.clone()).and_then(|ranges| top_k(ranges, reserve, Ties::Newer));
        for place in reserved.unwrap_or_default() {
            scores[candidates.start + place] = f32::INFINITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Protect, Recency};

    fn choice(select: Select) -> Choice {
        Choice::new(select, RandomStream { seed: 1, problem: 2, sample: 3 })
    }

    #[test]
    fn the_largest_ranges_are_kept_first() {
        let choice = choice(Select { draw: false, values: 40 });
        let protect = Protect { prompt: false, sinks: 1, recency: Recency::Tokens(1) };
        let limits = Limits::new(8, 1, protect).expect("feasible");
        let mut scores = [0.0, 5.0, 1.0, 2.0, 9.0];
        // 3 of 8 tokens, one of them the protected first.
        choice.rank_set(&mut scores, &[9.0, 1.0, 3.0, 2.0, 9.0], choice.reserve(&limits, 0), 1..4, |_| 1.0);
        assert_eq!(scores.to_vec(), [0.0, 5.0, f32::INFINITY, f32::INFINITY, 9.0]);
    }

    #[test]
    fn tokens_are_drawn_in_proportion_to_their_scores() {
        let choice = choice(Select { draw: true, values: 0 });
        let mut first = [0_usize; 3];
        for draw in 0..4000 {
            let mut scores = [1.0, 2.0, 0.0, 5.0];
            let exponential = |place: usize| -(1.0 - choice.stream.uniform(10 * draw + place)).ln();
            choice.rank_set(&mut scores, &[], 0, 0..3, exponential);
            assert_eq!((scores[2], scores[3]), (0.0, 5.0), "nothing has no chance, and the protected is left alone");
            first[usize::from(scores[1] > scores[0])] += 1;
        }
        let share = first[1] as f64 / 4000.0;
        assert!((share - 2.0 / 3.0).abs() < 0.03, "{share}");
    }
}
