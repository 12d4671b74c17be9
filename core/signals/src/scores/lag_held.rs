//! Standard deviation over channels of the keys and values held, scaled by a neighbouring chunk of tokens. The scores
//! are recomputed at each eviction.
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

use epikv_model::cache::{RowCache, SlotMap};

use super::row::{Form, ScoreRow};
use super::score::{Need, Score, ScoreSpec};
use crate::error::{Error, Result};
use crate::formulas::spread::{Extremes, spread, weights};
use crate::taps::held::{Held, by_set, each_head};

/// Tokens at the start that `lag-kv` sets apart.
const SINKS: usize = 4;

/// Tokens of a chunk at most.
const LONGEST: usize = 1 << 20;

pub(crate) static LAG_KV: ScoreSpec = ScoreSpec {
    name: "lag-kv",
    doc: "Rank within its chunk of the standard deviation over channels of key and value, scaled by the extremes of \
          the next chunk of 128 tokens",
    source: "LagKV (arXiv 2504.04704), section 3, as kvpress `LagKVPress`",
    differs: "the tokens held are ranked again under one budget, while its code evicts from each chunk once",
    needs: &[Need::Keys, Need::Values],
    forms: &["CHUNK"],
    ..ScoreSpec::BLANK
};

pub(crate) static EPIKV_LAG: ScoreSpec = ScoreSpec {
    name: "epikv-lag",
    doc: "Standard deviation over channels of key and value, averaged over layers, scaled by the extremes of the \
          previous chunk of 128 tokens",
    source: "`lag_kv` in the code of EpiKV's authors (arXiv 2606.26472)",
    needs: &[Need::Keys, Need::Values],
    forms: &["CHUNK"],
    ..ScoreSpec::BLANK
};

pub(crate) static EPIKV_LAG_KEY: ScoreSpec = ScoreSpec {
    name: "epikv-lag-key",
    doc: "As epikv-lag, of keys alone",
    source: "`lag_kv_key` in the code of EpiKV's authors (arXiv 2606.26472)",
    needs: &[Need::Keys],
    forms: &["CHUNK"],
    ..ScoreSpec::BLANK
};

/// The rows of the table.
pub(crate) const LAG_KV_ROW: ScoreRow = ScoreRow::with_argument(&LAG_KV, |argument| parse(Lag::Next, argument));
pub(crate) const EPIKV_LAG_ROW: ScoreRow =
    ScoreRow::with_argument(&EPIKV_LAG, |argument| parse(Lag::Previous, argument));
pub(crate) const EPIKV_LAG_KEY_ROW: ScoreRow =
    ScoreRow::with_argument(&EPIKV_LAG_KEY, |argument| parse(Lag::PreviousKeys, argument));

/// The score with the chunk that the argument says.
fn parse(lag: Lag, argument: &str) -> Option<Form> {
    let chunk = if argument.is_empty() { LagScore::CHUNK } else { argument.parse().ok()? };
    let written = if chunk == LagScore::CHUNK { String::new() } else { chunk.to_string() };
    (1..=LONGEST).contains(&chunk).then(|| Form::new(written, move |_| Ok(Box::new(LagScore { lag, chunk }))))
}

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
            let of = |vector: &dyn Fn(usize) -> Vec<f64>| {
                let of_places = |places: &std::ops::Range<usize>| places.clone().map(vector).collect::<Vec<_>>();
                weights(&of_places(&own), &of_places(&after))
            };
            let both = of(&|at| wide(held.key(at))).into_iter().zip(of(&|at| wide(held.value(at))));
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
                for (score, vector) in scores[at * self.chunk..].iter_mut().zip(own) {
                    *score += spread(vector, before.as_ref()) / n_heads;
                }
                before = Some(Extremes::of(own.iter().map(Vec::as_slice)));
            }
        }
        Ok(scores.into_iter().map(|score| score as f32).collect())
    }
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

impl Score for LagScore {
    fn spec(&self) -> &'static ScoreSpec {
        match self.lag {
            Lag::Next => &LAG_KV,
            Lag::Previous => &EPIKV_LAG,
            Lag::PreviousKeys => &EPIKV_LAG_KEY,
        }
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        match self.lag {
            Lag::Next => by_set(cache, |_, held| self.next(held)),
            Lag::Previous | Lag::PreviousKeys => {
                // One number a token whatever the scope: a mean over layers is one of the same tokens.
                let held = cache.sets().iter().map(SlotMap::len);
                if held.clone().any(|n| n != cache.sets()[0].len()) {
                    return Err(Error::UnequalSets { score: self.spec().name, held: held.collect() });
                }
                Ok(vec![self.previous(cache)?; cache.sets().len()])
            }
        }
    }
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
    fn among_equals_the_newer_ranks_higher() {
        assert_eq!(ranks(&[3.0, 1.0, 1.0]), [2, 0, 1]);
    }
}
