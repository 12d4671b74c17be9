//! P-values from surrogate statistics, for one test and for the maximum over many.
//!
//! ```text
//! p       = (1 + #{b : |t*_b| >= |t| - slack}) / (1 + B)
//! p_max,j = (1 + #{b : max over i of |t*_(b,i)| >= |t_j| - slack}) / (1 + B)
//! ```
//!
//! The second controls the family error over layers and uses their correlation, provided one replicate moves the labels
//! of all layers alike. Surrogates are label shifts ([`crate::circular_shift`]) or, since shifts reject trends, the
//! labels of another trace at matched relative position.
//!
//! # References
//!
//! Phipson & Smyth 2010, *Stat. Appl. Genet. Mol. Biol.* 9:39 (never 0); Westfall & Young 1993, *Resampling-Based
//! Multiple Testing* (max-T).

use crate::resampling::resample::Draws;

/// Statistics closer than this are equal; they differ by rounding.
pub const SLACK: f64 = 1e-12;

/// Two-sided p-value of `observed` against surrogate statistics `null` (`[B]`), never 0.
///
/// Undefined (`None`) without surrogates or with a `NaN`.
pub fn permutation_p(observed: f64, null: &[f64]) -> Option<f64> {
    if null.is_empty() || observed.is_nan() || null.iter().any(|t| t.is_nan()) {
        return None;
    }
    let count = null.iter().filter(|t| t.abs() >= observed.abs() - SLACK).count();
    Some((1 + count) as f64 / (1 + null.len()) as f64)
}

/// Max-T p-values of `observed` (`[tests]`) against replicates `null` (`[B]` rows of `[tests]`), `[tests]`.
///
/// An undefined test (`None`) stays undefined and plays no part in the maximum. The whole result is undefined
/// (`None`) without replicates.
///
/// # Panics
///
/// If a replicate has not one statistic a test.
pub fn max_t_p(observed: &[Option<f64>], null: &[Vec<Option<f64>>]) -> Option<Vec<Option<f64>>> {
    if null.is_empty() {
        return None;
    }
    let maxima: Vec<f64> = null
        .iter()
        .map(|row| {
            assert_eq!(row.len(), observed.len(), "one statistic a test");
            row.iter().flatten().fold(0.0_f64, |max, t| max.max(t.abs()))
        })
        .collect();
    Some(observed.iter().map(|t| permutation_p((*t)?, &maxima)).collect())
}

/// A non-zero shift in `1..n` for trace `trace` in replicate `replicate`; the same for every signal and layer.
///
/// Undefined (`None`) for traces of fewer than two tokens.
pub fn random_shift(seed: u64, replicate: u64, trace: u64, n: usize) -> Option<usize> {
    (n >= 2).then(|| 1 + Draws::new(mix(seed, trace), replicate).below(n - 1))
}

/// A seed of its own for each trace (the finaliser of `SplitMix64`, a bijection for a fixed seed).
fn mix(seed: u64, trace: u64) -> u64 {
    let mut z = seed.wrapping_add(trace.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(permutation_p(2.0, &[1.0, -2.0, 3.0]), Some(0.75));
        assert_eq!(permutation_p(5.0, &[1.0]), Some(0.5));
        assert_eq!(permutation_p(5.0, &[]), None);
    }

    #[test]
    fn max_t_uses_the_largest_of_a_replicate() {
        let null = vec![vec![Some(1.0), Some(-4.0), None], vec![Some(2.0), Some(0.0), None]];
        let p = max_t_p(&[Some(3.0), Some(5.0), None], &null).expect("replicates");
        assert_eq!(p, [Some(2.0 / 3.0), Some(1.0 / 3.0), None]);
    }

    #[test]
    fn shifts_are_never_none() {
        for replicate in 0..200 {
            let shift = random_shift(1, replicate, 2, 3).expect("three tokens");
            assert!(shift == 1 || shift == 2);
        }
        assert_eq!(random_shift(1, 0, 0, 1), None);
    }
}
