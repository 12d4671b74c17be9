//! Mean difference of two policies on the same problems, with an exact sign-flip test.
//!
//! `d_i = a_i - b_i`; `se = sd(d) / sqrt(n)`. Under equality each `d_i` may change its sign, which gives `2^m` equally
//! likely sums for the `m` non-zero differences:
//!
//! ```text
//! p = #{ |sum(+-d_i)| >= |sum(d_i)| } / 2^m
//! ```
//!
//! The sums are enumerated by meeting in the middle (two sorted lists of `2^(m/2)`), which makes up to
//! [`MAX_EXACT`] differences exact; when all `|d_i|` are equal, as for right and wrong, the binomial gives the same
//! number for any `m`.
//!
//! # References
//!
//! Fisher 1935, *The Design of Experiments*, chapter 3; Horowitz & Sahni 1974, *J. ACM* 21:277 (enumeration).

use crate::distributions::discrete::binomial_half;
use crate::distributions::tails;
use crate::moments;

/// Most unequal non-zero differences for which the sign-flip test is enumerated.
pub const MAX_EXACT: usize = 40;

/// Sums that differ by less than this share of `sum(|d|)` are equal; they differ by rounding.
const SLACK: f64 = 1e-13;

/// Two policies compared problem by problem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedDifference {
    /// Problems.
    pub n: usize,
    /// Problems with a non-zero difference.
    pub n_discordant: usize,
    /// Mean of `a - b`.
    pub mean_diff: f64,
    /// Its standard error; `None` for one problem.
    pub se: Option<f64>,
    /// Two-sided exact sign-flip p-value; 1 without non-zero differences, `None` above [`MAX_EXACT`] unequal ones.
    pub p_signflip_exact: Option<f64>,
    /// Two-sided p-value of the paired t test; `None` for one problem or without variance.
    pub p_t: Option<f64>,
}

/// Compares `a` and `b`, one figure a problem, both `[n]`.
///
/// Undefined (`None`) without problems or with a non-finite figure.
///
/// # Panics
///
/// If the lengths differ.
pub fn paired_difference(a: &[f64], b: &[f64]) -> Option<PairedDifference> {
    assert_eq!(a.len(), b.len(), "both policies answer the same problems");
    let d: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let mean_diff = moments::mean(&d)?;
    let se = moments::standard_error(&d);
    Some(PairedDifference {
        n: d.len(),
        n_discordant: d.iter().filter(|&&d| d != 0.0).count(),
        mean_diff,
        se,
        p_signflip_exact: sign_flip_p(&d),
        p_t: se.filter(|&se| se > 0.0).and_then(|se| tails::student_t_two_sided(mean_diff / se, (d.len() - 1) as f64)),
    })
}

/// The exact two-sided sign-flip p-value of `sum(d)`; zeros play no part.
///
/// `None` above [`MAX_EXACT`] non-zero differences of unequal size, or with a non-finite one.
pub fn sign_flip_p(d: &[f64]) -> Option<f64> {
    if d.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let sizes: Vec<f64> = d.iter().filter(|&&d| d != 0.0).map(|d| d.abs()).collect();
    let Some(&first) = sizes.first() else {
        return Some(1.0);
    };
    if sizes.iter().all(|s| s.to_bits() == first.to_bits()) {
        let minus = d.iter().filter(|&&d| d < 0.0).count() as u64;
        let m = sizes.len() as u64;
        let (cdf, _) = binomial_half(minus.min(m - minus), m);
        return Some((2.0 * cdf).min(1.0));
    }
    if sizes.len() > MAX_EXACT {
        return None;
    }
    let bound = d.iter().sum::<f64>().abs() - SLACK * sizes.iter().sum::<f64>();
    if bound <= 0.0 {
        return Some(1.0);
    }
    let (left, right) = sizes.split_at(sizes.len() / 2);
    let (left, right) = (signed_sums(left), signed_sums(right));
    // Sums are symmetric about 0, so the upper tail is counted and doubled.
    let mut above = 0_u64;
    let mut j = right.len();
    for l in &left {
        while j > 0 && l + right[j - 1] >= bound {
            j -= 1;
        }
        above += (right.len() - j) as u64;
    }
    let all = left.len() as f64 * right.len() as f64;
    Some((2.0 * above as f64 / all).min(1.0))
}

/// Every `sum(+-s_i)`, ascending.
fn signed_sums(sizes: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for s in sizes {
        sums = sums.iter().flat_map(|sum| [sum - s, sum + s]).collect();
    }
    sums.sort_unstable_by(f64::total_cmp);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // d = 3, -1, 2: sums 4, 6, 0, 2 and their negatives; |sum| >= 4 for 4 of 8.
        let got = paired_difference(&[3.0, 0.0, 2.0, 5.0], &[0.0, 1.0, 0.0, 5.0]).expect("defined");
        assert_eq!((got.n, got.n_discordant, got.mean_diff), (4, 3, 1.0));
        assert_eq!(got.p_signflip_exact, Some(0.5));
        // sum of squares 4 + 4 + 1 + 1, se = sqrt(10/3)/2
        assert!((got.se.expect("n > 1") - (10.0_f64 / 3.0).sqrt() / 2.0).abs() < 1e-15);
    }

    #[test]
    fn equal_sizes_use_the_binomial_for_any_count() {
        let small = sign_flip_p(&[1.0, 1.0, 1.0, -1.0, 0.0]);
        assert_eq!(small, Some(10.0 / 16.0));
        let d: Vec<f64> = (0..200).map(|i| if i < 120 { 1.0 } else { -1.0 }).collect();
        assert!(sign_flip_p(&d).is_some_and(|p| p < 0.01));
    }

    #[test]
    fn rounding_does_not_split_ties() {
        // 0.1 + 0.2 and 0.3 tie: all 8 sums are 0 or +-0.6 or smaller.
        let p = sign_flip_p(&[0.1, 0.2, 0.3]);
        assert_eq!(p, Some(0.25));
        let p = sign_flip_p(&[0.1, 0.2, -0.3]);
        assert_eq!(p, Some(1.0));
    }

    #[test]
    fn undefined_and_degenerate() {
        assert_eq!(paired_difference(&[], &[]), None);
        let same = paired_difference(&[1.0, 2.0], &[1.0, 2.0]).expect("defined");
        assert_eq!((same.p_signflip_exact, same.p_t), (Some(1.0), None));
        let many: Vec<f64> = (1..=41_u8).map(f64::from).collect();
        assert_eq!(sign_flip_p(&many), None);
    }
}
