//! Selections other than the highest scores: how they rank the tokens that are not protected.
//!
//! ```text
//! draw      rank(j) = s(j) / E(j)      E(j) exponential with mean 1, one for each token, kept set and eviction
//! reserve   rank(j) = infinity         for the tokens of the largest values, or random ones, that it has room for
//! ```
//!
//! Keeping the largest `s / E` draws without replacement, each time in proportion to the scores of what is left.
//!
//! # References
//! Efraimidis & Spirakis 2006 (weighted sampling with a reservoir); the reserve is that of `VaSE` (arXiv 2606.03928).

use std::ops::Range;

use epikv_model::cache::RowCache;
use epikv_model::sampler::RandomStream;
use epikv_signals::value_sizes;
use epikv_stats::{Ties, top_k};

use crate::error::Result;
use crate::policy::limits::Limits;
use crate::policy::select::{ReserveBy, Select};

/// The same for random reserves.
const RESERVE: u64 = 0x7265_7365_7276_6564;

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

    /// Tokens of a kept set that are kept whatever they score.
    pub fn reserve(self, limits: &Limits, set: usize) -> usize {
        self.select.reserve(limits, set).min(limits.room(set))
    }

    /// Whether a score decides alone.
    pub(crate) fn by_score(self) -> bool {
        self.select.by_score()
    }

    /// Turns the scores of all kept sets into ranks; higher is kept.
    ///
    /// # Errors
    /// If the values are not on the CPU.
    pub(crate) fn rank(self, scores: &mut [Vec<f32>], cache: &RowCache, limits: &Limits) -> Result<()> {
        if self.select.by_score() {
            return Ok(());
        }
        let eviction = cache.last().map_or(0, |newest| newest.0 as usize) * scores.len();
        let reserved = self.reserved(cache, eviction)?;
        for (set, scores) in scores.iter_mut().enumerate() {
            let candidates = limits.protected().candidates(scores.len());
            let slots = &cache.sets()[set];
            // One number a token, kept set and eviction: positions are 32 bits.
            let exponential = |place: usize| {
                let pos = slots.nth(place).map_or(0, |pos| pos.0 as usize);
                -(1.0 - self.stream.uniform(((eviction + set) << 32) | pos)).ln()
            };
            let reserved = reserved.get(set).map_or(&[][..], Vec::as_slice);
            self.rank_set(scores, reserved, self.reserve(limits, set), candidates, exponential);
        }
        Ok(())
    }

    /// What ranks the tokens of the reserve in each kept set; nothing where there is no reserve.
    fn reserved(self, cache: &RowCache, eviction: usize) -> Result<Vec<Vec<f32>>> {
        let Some(reserve) = self.select.reserve else { return Ok(Vec::new()) };
        let drawn_at = match reserve.by {
            ReserveBy::Value(size) => return Ok(value_sizes(cache, size)?),
            ReserveBy::Random => 0,
            ReserveBy::RandomAnew => eviction,
        };
        let own = RandomStream { seed: self.stream.seed ^ RESERVE, ..self.stream };
        let sets = cache.sets().iter().enumerate();
        let number = |set: usize, pos: u32| own.uniform(((drawn_at + set) << 32) | pos as usize) as f32;
        Ok(sets.map(|(set, held)| held.positions().map(|pos| number(set, pos.0)).collect()).collect())
    }

    /// The same for one kept set, with what ranks the tokens of a reserve of so many.
    pub fn rank_set(
        self,
        scores: &mut [f32],
        sizes: &[f32],
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
        let reserved = sizes.get(candidates.clone()).and_then(|sizes| top_k(sizes, reserve, Ties::Newer));
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
        let choice = choice("top-k+values(40%)".parse().expect("a selection"));
        let protect = Protect { prompt: false, sinks: 1, recency: Recency::Tokens(1) };
        let limits = Limits::new(8, 1, protect).expect("feasible");
        let mut scores = [0.0, 5.0, 1.0, 2.0, 9.0];
        // 3 of 8 tokens, one of them the protected first.
        choice.rank_set(&mut scores, &[9.0, 1.0, 3.0, 2.0, 9.0], choice.reserve(&limits, 0), 1..4, |_| 1.0);
        assert_eq!(scores.to_vec(), [0.0, 5.0, f32::INFINITY, f32::INFINITY, 9.0]);
    }

    #[test]
    fn tokens_are_drawn_in_proportion_to_their_scores() {
        let choice = choice(Select { draw: true, reserve: None });
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
