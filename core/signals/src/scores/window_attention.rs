//! The attention that the newest tokens pay to the older ones: a function of the queries of an observation window and of the
//! keys that are held, computed when an eviction asks for it.
//!
//! ```text
//! p_q(r, j) = softmax over the seen j of  q(r) . k_j / sqrt(D)      r = the last w tokens
//! s(j)      = pool_j ( mean over r and the query heads q of the group of p_q(r, j) )
//! ```
//!
//! | score | w | seen by row `r` | group | pool |
//! | --- | --- | --- | --- | --- |
//! | `snapkv` | 32 | all tokens up to `r` | mean | largest of 7 |
//! | `snapkv-decode` | 8 | all before the window | softmax of the largest logit | largest of 7 |
//! | `r-kv` | 8 | all before the window | softmax of the largest logit | largest of 7 |
//! | `vase` | 64 | all before the window | mean | mean of 5 |
//!
//! `r-kv` is `lambda s(j) - (1 - lambda) redundancy(j)` (`redundancy.rs`), `lambda` 0.1. Pools run over neighbours in the
//! order of positions among the tokens before the window; a mean counts what is beyond the ends as zero.
//!
//! The window's own tokens have no score; they rank above all. The window is no longer than the recent tokens that the policy
//! protects, so that its tokens are held, and at least one token long. A kept set that several heads or layers share has the
//! mean of their scores. Queries stay as they were rotated when their tokens came.
//!
//! **Differs from the originals in:** neighbours are those in time (after their first compression `SnapKV`, `R-KV` and `VaSE`
//! pool slots in order of score); `SnapKV`'s published sets are for each query head, before a group shares its keys.
//!
//! Cost: `O(w H n D)` a layer when asked; state: `w` queries a layer. No attention matrix is needed.
//!
//! # References
//! `SnapKV` (arXiv 2404.14469), section 4; R-KV (arXiv 2505.24133), section 3; `VaSE` (arXiv 2606.03928), section 3, as its
//! code has them. The mean over a group before pooling is that of KVCache-Factory.

use epikv_model::cache::RowCache;
use epikv_model::taps::{ProbePlan, Reduce, TapPoint};

use super::redundancy::redundancy;
use crate::error::{Error, Result};
use crate::numbers::softmax;
use crate::taps::Chunk;
use crate::taps::held::{Held, by_set, dot};

/// Named in errors.
const NAME: &str = "window attention";

/// Cosine above which two keys say the same.
const SIMILAR: f32 = 0.5;

/// Which keys a row of the window sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// All up to its own token.
    Held,
    /// Those before the window.
    Before,
}

/// How the query heads that share a KV head become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Mean of their weights.
    Mean,
    /// Weights of the largest of their logits.
    LargestLogit,
}

/// What a score takes from its neighbours. Widths are odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Nothing.
    None,
    /// The mean of so many scores around it.
    Mean(usize),
    /// The largest of so many scores around it.
    Largest(usize),
}

/// How the score is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowAttention {
    /// Tokens of the observation window, `w`.
    pub rows: usize,
    /// What a row sees.
    pub seen: Seen,
    /// How query heads share.
    pub group: Group,
    /// How neighbours share.
    pub pool: Pool,
    /// Thousandths of the attention in the mix with redundancy; `None` without redundancy.
    pub lambda: Option<u16>,
}

impl WindowAttention {
    /// `SnapKV`.
    pub const SNAPKV: Self =
        Self { rows: 32, seen: Seen::Held, group: Group::Mean, pool: Pool::Largest(7), lambda: None };
    /// `SnapKV` while decoding, as the baselines of R-KV have it.
    pub const SNAPKV_DECODE: Self =
        Self { rows: 8, seen: Seen::Before, group: Group::LargestLogit, pool: Pool::Largest(7), lambda: None };
    /// R-KV.
    pub const R_KV: Self = Self { lambda: Some(100), ..Self::SNAPKV_DECODE };
    /// `VaSE` by attention, before its reserve and its draw.
    pub const VASE: Self = Self { rows: 64, seen: Seen::Before, group: Group::Mean, pool: Pool::Mean(5), lambda: None };

    /// What the forward pass must record, for a model of `n_layers`.
    pub fn plan(n_layers: usize) -> ProbePlan {
        (0..n_layers).fold(ProbePlan::default(), |plan, layer| plan.tap(TapPoint::QueryPostRope(layer), Reduce::Full))
    }

    /// The scores of what a head holds, `[n]`, by the queries of its group for the last tokens held, `[w][G D]`.
    pub(crate) fn of_head(&self, queries: &[&[f32]], held: Held<'_>) -> Vec<f64> {
        let before = held.len().saturating_sub(queries.len());
        let mut sums = vec![0.0; before];
        for (row, query) in queries.iter().enumerate() {
            let seen = match self.seen {
                Seen::Held => (before + row + 1).min(held.len()),
                Seen::Before => before,
            };
            let logits = |q: &[f32]| -> Vec<f64> {
                let scale = 1.0 / (held.head_dim as f64).sqrt();
                (0..seen).map(|place| f64::from(dot(q, held.key(place))) * scale).collect()
            };
            let heads = query.chunks_exact(held.head_dim);
            let n_heads = heads.len() as f64;
            let mut add = |weights: &[f64], part: f64| {
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += part * weight);
            };
            match self.group {
                Group::Mean => heads.for_each(|q| add(&softmax(&logits(q)), 1.0 / n_heads)),
                Group::LargestLogit => {
                    let largest = heads.map(logits).reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a.max(*b)).collect());
                    add(&softmax(&largest.unwrap_or_default()), 1.0);
                }
            }
        }
        let means: Vec<f64> = sums.iter().map(|sum| sum / queries.len().max(1) as f64).collect();
        let mut scores = self.pool.of(&means);
        if let Some(lambda) = self.lambda {
            let lambda = f64::from(lambda) / 1000.0;
            let redundancy = redundancy(held, SIMILAR);
            scores.iter_mut().zip(redundancy).for_each(|(s, r)| *s = lambda * *s - (1.0 - lambda) * r);
        }
        scores.resize(held.len(), f64::INFINITY);
        scores
    }
}

impl Pool {
    fn of(self, x: &[f64]) -> Vec<f64> {
        let around = |width: usize| {
            let half = width / 2;
            (0..x.len()).map(move |at| &x[at.saturating_sub(half)..(at + half + 1).min(x.len())])
        };
        match self {
            Self::None => x.to_vec(),
            Self::Mean(width) => around(width).map(|near| near.iter().sum::<f64>() / width as f64).collect(),
            Self::Largest(width) => {
                around(width).map(|near| near.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect()
            }
        }
    }
}

/// The queries of the last tokens of one generation, from which the scores are made.
#[derive(Debug, Clone)]
pub struct WindowQueries {
    how: WindowAttention,
    rows: usize,
    /// The last queries of each layer, oldest first, `[at most w, H D]`.
    layers: Vec<Vec<f32>>,
    /// `H D`.
    width: usize,
}

impl WindowQueries {
    /// Nothing seen yet, for a model of `n_layers` and a policy that protects the newest `recency` tokens.
    pub fn new(how: WindowAttention, n_layers: usize, recency: usize) -> Self {
        Self { how, rows: how.rows.min(recency).max(1), layers: vec![Vec::new(); n_layers], width: 0 }
    }

    /// Takes the queries of the new tokens of a pass.
    ///
    /// # Errors
    /// If the pass did not record them.
    pub fn push(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        for (layer, queries) in self.layers.iter_mut().enumerate() {
            self.width = chunk.lend(NAME, TapPoint::QueryPostRope(layer), Reduce::Full, |all, width| {
                queries.extend_from_slice(&all[all.len().saturating_sub(self.rows * width)..]);
                queries.drain(..queries.len().saturating_sub(self.rows * width));
                width
            })?;
        }
        Ok(())
    }

    /// The scores of the tokens that each kept set of a cache holds, in order of positions.
    ///
    /// # Errors
    /// If the keys are not on the CPU, or the queries are those of another model.
    pub fn of(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        let (layers, heads) = (cache.n_layers(), cache.n_kv_heads());
        if layers != self.layers.len() || !self.width.is_multiple_of(heads.max(1)) {
            return Err(Error::QueryShape { expected: (layers, heads), got: (self.layers.len(), self.width) });
        }
        by_set(cache, |head, held| {
            let own = self.width / head.n_heads;
            let rows = self.layers[head.layer].chunks_exact(self.width.max(1));
            let queries: Vec<&[f32]> = rows.map(|row| &row[head.index * own..(head.index + 1) * own]).collect();
            self.how.of_head(&queries, held)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: WindowAttention =
        WindowAttention { rows: 2, seen: Seen::Held, group: Group::Mean, pool: Pool::None, lambda: None };

    /// Four keys of one channel, the last two those of the window.
    fn held() -> Held<'static> {
        Held { keys: &[0.0, 1.0, 0.0, 2.0], values: &[0.0; 4], slots: &[0, 1, 2, 3], head_dim: 1 }
    }

    #[test]
    fn rows_see_up_to_themselves_or_what_is_before_the_window() {
        let queries: [&[f32]; 2] = [&[0.0], &[1.0]];
        let e = std::f64::consts::E;
        let all = PLAIN.of_head(&queries, held());
        // Row 0 sees three keys alike; row 1 sees four, with weights 1, e, 1, e^2.
        let want = 0.5 * (1.0 / 3.0 + 1.0 / (2.0 + e + e * e));
        assert!((all[0] - want).abs() < 1e-9, "{all:?}");
        assert!(all[2..].iter().all(|score| *score == f64::INFINITY), "the window's own");
        let before = WindowAttention { seen: Seen::Before, ..PLAIN }.of_head(&queries, held());
        assert!((before[1] - 0.5 * (0.5 + e / (1.0 + e))).abs() < 1e-9, "{before:?}");
    }

    #[test]
    fn a_group_is_a_mean_or_its_largest_logit() {
        let queries: [&[f32]; 2] = [&[0.0, 1.0], &[0.0, 1.0]];
        let e = std::f64::consts::E;
        let before = WindowAttention { seen: Seen::Before, ..PLAIN };
        let mean = before.of_head(&queries, held());
        assert!((mean[1] - 0.5 * (0.5 + e / (1.0 + e))).abs() < 1e-9, "{mean:?}");
        let largest = WindowAttention { group: Group::LargestLogit, ..before }.of_head(&queries, held());
        assert!((largest[1] - e / (1.0 + e)).abs() < 1e-9, "{largest:?}");
    }

    #[test]
    fn pools_end_at_the_ends() {
        let x = [3.0, 0.0, 0.0, 9.0];
        assert_eq!(Pool::Mean(3).of(&x), [1.0, 1.0, 3.0, 3.0]);
        assert_eq!(Pool::Largest(3).of(&x), [3.0, 3.0, 9.0, 9.0]);
        assert_eq!(Pool::None.of(&x), x.to_vec());
    }

    #[test]
    fn fewer_tokens_than_the_window_all_belong_to_it() {
        let queries: [&[f32]; 6] = [&[0.0]; 6];
        assert_eq!(PLAIN.of_head(&queries, held()), vec![f64::INFINITY; 4]);
    }
}
