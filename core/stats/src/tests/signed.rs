//! Tests of differences that use only signs or signed ranks.
//!
//! One extreme trace moves a mean of z. These two tests use its sign or rank only.
//!
//! # References
//!
//! Wilcoxon 1945, *Biometrics Bulletin* 1:80; Pratt & Gibbons 1981, *Concepts of Nonparametric Theory*, chapter 3.

use crate::distributions::discrete::binomial_half;
use crate::distributions::tails;
use crate::ranks::rank::Midranks;

/// Most differences for which the signed-rank distribution is enumerated.
const MAX_EXACT: usize = 50;

/// Two-sided sign test of `d` (`[n]`): `min(1, 2 P(X <= min(plus, minus)))`, `X ~ Binomial(plus + minus, 1/2)`.
///
/// Zeros are left out. Undefined (`None`) when nothing is left, or with a `NaN`.
pub fn sign_test(d: &[f64]) -> Option<f64> {
    if d.iter().any(|d| d.is_nan()) {
        return None;
    }
    let plus = d.iter().filter(|&&d| d > 0.0).count() as u64;
    let minus = d.iter().filter(|&&d| d < 0.0).count() as u64;
    if plus + minus == 0 {
        return None;
    }
    Some((2.0 * binomial_half(plus.min(minus), plus + minus).0).min(1.0))
}

/// Wilcoxon's signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Non-zero differences.
    pub n: usize,
    /// Sum of the midranks of `|d|` over positive differences.
    pub w_plus: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// Whether `p` is exact (no ties, at most 50 differences) or the tie-corrected normal approximation.
    pub exact: bool,
}

/// The signed-rank test of `d` (`[n]`); zeros are left out first.
///
/// Exact: the number of subsets of `1..=n` with each sum, by dynamic programming. Otherwise
/// `z = (W+ - n(n+1)/4) / sqrt(n(n+1)(2n+1)/24 - T/48)`, without continuity correction.
///
/// Undefined (`None`) without non-zero differences, or with a `NaN`.
pub fn signed_rank(d: &[f64]) -> Option<SignedRank> {
    let d: Vec<f64> = d.iter().copied().filter(|&d| d != 0.0).collect();
    let sizes: Vec<f64> = d.iter().map(|d| d.abs()).collect();
    let ranks = Midranks::new(&sizes)?;
    let n = d.len();
    if n == 0 {
        return None;
    }
    let twice_plus: u64 = d.iter().zip(ranks.twice()).filter(|(d, _)| **d > 0.0).map(|(_, &r)| r).sum();
    let w_plus = twice_plus as f64 / 2.0;
    let exact = ranks.tie_sum() == 0 && n <= MAX_EXACT;
    let p = if exact {
        exact_p((twice_plus / 2) as usize, n)
    } else {
        let m = n as f64;
        let variance = m * (m + 1.0) * (2.0 * m + 1.0) / 24.0 - ranks.tie_sum() as f64 / 48.0;
        tails::normal_two_sided((w_plus - m * (m + 1.0) / 4.0) / variance.sqrt())
    };
    Some(SignedRank { n, w_plus, p, exact })
}

/// `min(1, 2 P(W <= min(w, total - w)))`.
fn exact_p(w: usize, n: usize) -> f64 {
    let total = n * (n + 1) / 2;
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..=total).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let lower: f64 = ways[..=w.min(total - w)].iter().sum();
    (2.0 * lower / ways.iter().sum::<f64>()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_test_by_hand() {
        // 4 plus, 1 minus: 2 (1 + 5)/32
        assert_eq!(sign_test(&[1.0, 2.0, 3.0, 4.0, -1.0, 0.0]), Some(12.0 / 32.0));
        assert_eq!(sign_test(&[0.0]), None);
    }

    #[test]
    fn signed_rank_by_hand() {
        // Ranks of |d| 1, 2, 3 with a minus on 1: W+ = 5, subsets with sum <= 1: {}, {1}: p = 2*2/8.
        let got = signed_rank(&[-1.0, 2.0, 3.0]).expect("defined");
        assert_eq!((got.w_plus, got.p, got.exact), (5.0, 0.5, true));
        // Ties: |d| = 1, 1, 1, W+ = 4, variance 3.5 - 24/48 = 3, z = 1/sqrt(3).
        let got = signed_rank(&[1.0, 1.0, -1.0]).expect("defined");
        assert!(!got.exact);
        assert!((got.p - tails::normal_two_sided(1.0 / 3.0_f64.sqrt())).abs() < 1e-15);
        assert_eq!(signed_rank(&[0.0, 0.0]), None);
    }
}
