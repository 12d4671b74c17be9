//! Equivalence of two policies: is the difference inside a margin that was declared before the run?
//!
//! Two one-sided t tests on paired differences `d` with margin `delta`:
//!
//! ```text
//! p_lower = P(T > (mean + delta)/se),   p_upper = P(T > (delta - mean)/se),   df = n - 1
//! p_equivalence = max(p_lower, p_upper)
//! ```
//!
//! `p_lower` alone is the non-inferiority test of "A is at most `delta` worse than B". A difference that is merely not
//! significant says nothing about parity.
//!
//! # References
//!
//! Schuirmann 1987, *J. Pharmacokinetics and Biopharmaceutics* 15:657.

use crate::distributions::tails;
use crate::moments;

/// The two one-sided tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equivalence {
    /// Mean of `a - b`.
    pub mean_diff: f64,
    /// Its standard error.
    pub se: f64,
    /// P-value against "the mean is at or below `-margin`": non-inferiority of A.
    pub p_lower: f64,
    /// P-value against "the mean is at or above `margin`".
    pub p_upper: f64,
    /// The larger of the two.
    pub p_equivalence: f64,
}

/// The tests on paired figures `a` and `b` (`[n]`) with a `margin > 0` in their unit.
///
/// Undefined (`None`) below two problems, without variance, or for a margin that is not positive.
///
/// # Panics
///
/// If the lengths differ.
pub fn paired_equivalence(a: &[f64], b: &[f64], margin: f64) -> Option<Equivalence> {
    assert_eq!(a.len(), b.len(), "both policies answer the same problems");
    if margin.is_nan() || margin <= 0.0 {
        return None;
    }
    let d: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let se = moments::standard_error(&d).filter(|&se| se > 0.0)?;
    let mean_diff = moments::mean(&d)?;
    let df = (d.len() - 1) as f64;
    let p_lower = tails::student_t_sf((mean_diff + margin) / se, df)?;
    let p_upper = tails::student_t_sf((margin - mean_diff) / se, df)?;
    Some(Equivalence { mean_diff, se, p_lower, p_upper, p_equivalence: p_lower.max(p_upper) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand_with_two_degrees_of_freedom() {
        // d = -1, 0, 1: mean 0, se 1/sqrt(3); P(T > t) = (1 - t/sqrt(2 + t^2))/2 for df 2.
        let got = paired_equivalence(&[0.0, 1.0, 2.0], &[1.0, 1.0, 1.0], 2.0).expect("defined");
        let t = 2.0 * 3.0_f64.sqrt();
        let want = (1.0 - t / (2.0 + t * t).sqrt()) / 2.0;
        assert!((got.p_equivalence - want).abs() < 1e-14);
        assert!((got.p_lower - got.p_upper).abs() < 1e-15);
    }

    #[test]
    fn undefined() {
        assert_eq!(paired_equivalence(&[1.0, 2.0], &[1.0, 2.0], 0.1), None);
        assert_eq!(paired_equivalence(&[1.0, 2.0], &[2.0, 1.0], 0.0), None);
        assert_eq!(paired_equivalence(&[1.0], &[2.0], 0.1), None);
    }
}
