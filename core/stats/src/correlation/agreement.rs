//! Do two scores keep the same tokens? Rank agreement and overlap of the top `k`, with the chance level.
//!
//! For top-k sets `A` and `B` of `n` tokens and `o = |A and B|`:
//!
//! | field | formula |
//! | --- | --- |
//! | precision@k | `o / k` |
//! | Jaccard@k | `o / (2k - o)` |
//! | expected precision | `k / n`, for two unrelated scores |
//! | hypergeometric p | `P(X >= o)` for two random sets of `k` |
//!
//! Compare per trace, at the `k` that the budget implies, and with scores of the same causal horizon.
//!
//! # References
//!
//! Kendall 1945 (tau-b); Jaccard 1912, *New Phytologist* 11:37; Feller 1968, section II.6 (hypergeometric).

use crate::correlation::kendall::kendall_tau_b;
use crate::correlation::spearman::spearman;
use crate::distributions::discrete::hypergeometric_sf;
use crate::ranks::topk::{Ties, top_k_f64};

/// How much two scores agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Spearman's rho; `None` when a score is constant.
    pub spearman: Option<f64>,
    /// Kendall's tau-b; `None` when a score is constant.
    pub kendall_tau_b: Option<f64>,
    /// Overlap of the top `k`; `None` for `k = 0` or `k > n`.
    pub top: Option<Overlap>,
}

/// How much two top-k sets share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// Tokens in both sets.
    pub overlap: usize,
    /// `overlap / k`.
    pub precision: f64,
    /// `overlap / (2k - overlap)`.
    pub jaccard: f64,
    /// `k / n`, the precision of chance.
    pub expected_precision: f64,
    /// The chance of this overlap or a larger one.
    pub hypergeom_p: f64,
}

/// Compares scores `a` and `b` (`[n]`) as rankings and by their top `k`.
///
/// Undefined (`None`) without tokens or with a `NaN`.
///
/// # Panics
///
/// If the lengths differ.
pub fn rank_agreement(a: &[f64], b: &[f64], k: usize, ties: Ties) -> Option<Agreement> {
    assert_eq!(a.len(), b.len(), "both score the same tokens");
    let n = a.len();
    let (top_a, top_b) = (top_k_f64(a, k, ties)?, top_k_f64(b, k, ties)?);
    if n == 0 {
        return None;
    }
    Some(Agreement { spearman: spearman(a, b), kendall_tau_b: kendall_tau_b(a, b), top: overlap(&top_a, &top_b, n) })
}

/// Compares two sets of the same size `k` of `n` tokens, each ascending without repeats.
///
/// Undefined (`None`) for empty sets or sets larger than `n`.
///
/// # Panics
///
/// If the sizes differ.
pub fn overlap(a: &[usize], b: &[usize], n: usize) -> Option<Overlap> {
    assert_eq!(a.len(), b.len(), "both sets hold k tokens");
    let k = a.len();
    if k == 0 || k > n {
        return None;
    }
    let overlap = a.iter().filter(|i| b.binary_search(i).is_ok()).count();
    Some(Overlap {
        overlap,
        precision: overlap as f64 / k as f64,
        jaccard: overlap as f64 / (2 * k - overlap) as f64,
        expected_precision: k as f64 / n as f64,
        hypergeom_p: hypergeometric_sf(overlap as u64, k as u64, k as u64, n as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let a = [5.0, 4.0, 3.0, 2.0, 1.0];
        let b = [5.0, 1.0, 4.0, 2.0, 3.0];
        let got = rank_agreement(&a, &b, 2, Ties::Older).expect("no NaN");
        let top = got.top.expect("0 < k <= n");
        assert_eq!((top.overlap, top.precision, top.expected_precision), (1, 0.5, 0.4));
        assert!((top.jaccard - 1.0 / 3.0).abs() < 1e-15);
        assert!((top.hypergeom_p - 0.7).abs() < 1e-15);
    }

    #[test]
    fn undefined_parts() {
        let got = rank_agreement(&[1.0, 1.0], &[1.0, 2.0], 0, Ties::Newer).expect("no NaN");
        assert_eq!((got.spearman, got.kendall_tau_b, got.top), (None, None, None));
        assert_eq!(rank_agreement(&[f64::NAN], &[1.0], 1, Ties::Newer), None);
    }

    #[test]
    fn same_scores_agree() {
        let got = rank_agreement(&[1.0, 3.0, 2.0], &[1.0, 3.0, 2.0], 2, Ties::Newer).expect("no NaN");
        assert_eq!((got.spearman, got.kendall_tau_b), (Some(1.0), Some(1.0)));
        assert_eq!(got.top.map(|t| (t.overlap, t.jaccard)), Some((2, 1.0)));
    }
}
