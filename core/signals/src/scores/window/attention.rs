//! Attention from the queries of an observation window to the tokens that one KV head holds.

use epikv_model::cache::HeadView;

use super::redundancy::redundancy;
use crate::formulas::numbers::{dot, softmax};

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

    /// The scores of what a head holds, `[n]`, by the queries of its group for the last tokens held, `[w][G D]`.
    pub fn of_head(&self, queries: &[&[f32]], held: HeadView<'_>) -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: WindowAttention =
        WindowAttention { rows: 2, seen: Seen::Held, group: Group::Mean, pool: Pool::None, lambda: None };

    /// Four keys of one channel, the last two those of the window.
    fn held() -> HeadView<'static> {
        HeadView { keys: &[0.0, 1.0, 0.0, 2.0], values: &[0.0; 4], slots: &[0, 1, 2, 3], head_dim: 1 }
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
