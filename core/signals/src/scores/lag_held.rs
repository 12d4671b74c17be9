//! How spread out the channels of what is held are on the scale of a neighbouring chunk: scores that are made anew at each
//! eviction from the keys and values that are held.
//!
//! ```text
//! x'_d(t) = (x_d(t) - min_d) / (max_d - min_d + 1e-9)       min, max of channel d over the neighbouring chunk
//! s(t)    = Std_d(x'(t))                                    unbiased
//! ```
//!
//! | score | scale | chunks | a token's score |
//! | --- | --- | --- | --- |
//! | `lag-kv` | the chunk after | of all that is held but the first 4 | rank within its chunk of `softmax s(k) + softmax s(v)`, over the length of a chunk |
//! | `epikv-lag` | the chunk before; none for the first | of all that is held | `s` of the keys and of the values, added; of means over layers, then mean over KV heads |
//! | `epikv-lag-key` | the same | the same | of the keys alone |
//!
//! Chunks hold 128 tokens unless told otherwise and are cut in the order of positions. By `lag-kv` the first 4 tokens, the last
//! whole chunk and what comes after it rank above all; with less than two chunks everything ranks by recency.
//!
//! **Differs from `LagKV` in:** its code keeps a share of each chunk as it fills and never looks at it again, so that its
//! cache grows; here, as in kvpress, what is held is ranked under one budget.
//!
//! Cost: `O(H_kv n D)` a layer when asked; state: none.
//!
//! # References
//! `LagKV` (arXiv 2504.04704), section 3, as `LagKVPress` of NVIDIA's kvpress has it; `lag_kv` and `lag_kv_key` in the code of
//! `EpiKV`'s authors (arXiv 2606.26472).

use epikv_model::cache::RowCache;

use crate::error::Result;
use crate::numbers::{deviation, scaled, softmax};
use crate::taps::held::{Held, by_set, each_head};

/// Tokens at the start that `lag-kv` sets apart.
const SINKS: usize = 4;

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// On the scale of the chunk after.
    Next,
    /// On the scale of the chunk before, keys and values.
    Previous,
    /// The same of keys alone.
    PreviousKeys,
}

/// How the score is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LagScore {
    /// Which of them.
    pub lag: Lag,
    /// Tokens of a chunk, at least 1.
    pub chunk: usize,
}

impl LagScore {
    /// Tokens of a chunk unless told otherwise.
    pub const CHUNK: usize = 128;

    /// The scores of the tokens that each kept set of a cache holds, in order of positions.
    ///
    /// # Errors
    /// If keys or values are not on the CPU.
    pub fn of(self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        match self.lag {
            Lag::Next => by_set(cache, |_, held| self.next(held)),
            Lag::Previous | Lag::PreviousKeys => {
                let scores = self.previous(cache)?;
                // One number a token whatever the scope, so all sets hold the same tokens.
                Ok(cache.sets().iter().map(|set| scores[..set.len()].to_vec()).collect())
            }
        }
    }

    /// By the chunk after, of one head.
    fn next(self, held: Held<'_>) -> Vec<f64> {
        let n = held.len();
        let n_chunks = n.saturating_sub(SINKS) / self.chunk;
        if n_chunks < 2 {
            let rest = n.saturating_sub(SINKS) as f64;
            return (0..n).map(|at| at.checked_sub(SINKS).map_or(1.0, |at| at as f64 / rest)).collect();
        }
        let mut scores = vec![1.0; n];
        for chunk in 0..n_chunks - 1 {
            let own = SINKS + chunk * self.chunk..SINKS + (chunk + 1) * self.chunk;
            let after = own.end..own.end + self.chunk;
            let weights = |of: &dyn Fn(usize) -> Vec<f64>| {
                let (own, after): (Vec<_>, Vec<_>) = (own.clone().map(of).collect(), after.clone().map(of).collect());
                softmax(&spread(&own, Some(&after)))
            };
            let both = weights(&|at| wide(held.key(at))).into_iter().zip(weights(&|at| wide(held.value(at))));
            let ranks = ranks(&both.map(|(k, v)| k + v).collect::<Vec<_>>());
            scores[own].iter_mut().zip(ranks).for_each(|(score, rank)| *score = rank as f64 / self.chunk as f64);
        }
        scores
    }

    /// By the chunk before, of means over layers.
    fn previous(self, cache: &RowCache) -> Result<Vec<f32>> {
        let n_parts = if self.lag == Lag::Previous { 2 } else { 1 };
        // By part and head, `[n][D]`.
        let mut sums: Vec<Vec<Vec<f64>>> = Vec::new();
        each_head(cache, |head, held| {
            sums.resize(n_parts * head.n_heads, Vec::new());
            for part in 0..n_parts {
                let own = &mut sums[part * head.n_heads + head.index];
                own.resize(held.len(), vec![0.0; held.head_dim]);
                for (at, sum) in own.iter_mut().enumerate() {
                    let vector = if part == 0 { held.key(at) } else { held.value(at) };
                    sum.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += f64::from(x));
                }
            }
        })?;
        let n_layers = cache.n_layers() as f64;
        let n_heads = (sums.len() / n_parts).max(1) as f64;
        let mut scores = vec![0.0; sums.first().map_or(0, Vec::len)];
        for mut of_head in sums {
            of_head.iter_mut().flatten().for_each(|x| *x /= n_layers);
            let mut before = None;
            for (at, own) in of_head.chunks(self.chunk).enumerate() {
                let own_scores = &mut scores[at * self.chunk..][..own.len()];
                own_scores.iter_mut().zip(spread(own, before)).for_each(|(score, s)| *score += s / n_heads);
                before = Some(own);
            }
        }
        Ok(scores.into_iter().map(|score| score as f32).collect())
    }
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// The deviation of each token over its channels, scaled by the extremes of `scale` where there is one.
fn spread(tokens: &[Vec<f64>], scale: Option<&[Vec<f64>]>) -> Vec<f64> {
    let extremes: Option<Vec<(f64, f64)>> = scale.map(|scale| {
        let channels = scale.first().map_or(0, Vec::len);
        let of = |channel: usize| scale.iter().map(move |token| token[channel]);
        let ends = |channel| of(channel).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        (0..channels).map(ends).collect()
    });
    let one = |token: &Vec<f64>| match &extremes {
        Some(extremes) => {
            let own = token.iter().zip(extremes).map(|(&x, &(lo, hi))| scaled(x, lo, hi));
            deviation(&own.collect::<Vec<_>>())
        }
        None => deviation(token),
    };
    tokens.iter().map(one).collect()
}

/// How many are smaller, for each; among equals the newer counts as larger.
fn ranks(x: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
    let mut ranks = vec![0; x.len()];
    order.into_iter().enumerate().for_each(|(rank, at)| ranks[at] = rank);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_two_chunks_rank_by_recency() {
        let held = Held { keys: &[0.0; 20], values: &[0.0; 20], slots: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], head_dim: 2 };
        let scores = LagScore { lag: Lag::Next, chunk: 4 }.next(held);
        assert_eq!(scores[..6].to_vec(), [1.0, 1.0, 1.0, 1.0, 0.0, 1.0 / 6.0]);
    }

    #[test]
    fn the_chunk_after_sets_the_scale_and_ranks_are_of_a_chunk() {
        // Chunks of 2 behind the 4 first tokens: (4, 5) on the scale of (6, 7), and what is later ranks above.
        let keys = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 9.0, 1.0, 0.0, 0.0, 2.0, 2.0, 5.0, 5.0];
        let held = Held { keys: &keys, values: &keys, slots: &[0, 1, 2, 3, 4, 5, 6, 7, 8], head_dim: 2 };
        let scores = LagScore { lag: Lag::Next, chunk: 2 }.next(held);
        assert_eq!(scores, [1.0, 1.0, 1.0, 1.0, 0.0, 0.5, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn spread_is_on_the_scale_it_is_given() {
        let tokens = [vec![1.0, 3.0]];
        assert!((spread(&tokens, None)[0] - 2.0_f64.sqrt()).abs() < 1e-12);
        let scale = [vec![0.0, 1.0], vec![2.0, 5.0]];
        assert!(spread(&tokens, Some(&scale))[0] < 1e-8, "both channels are half way");
        assert_eq!(ranks(&[3.0, 1.0, 1.0]), [2, 0, 1]);
    }
}
