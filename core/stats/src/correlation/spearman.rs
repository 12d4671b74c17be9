//! Spearman's rank correlation of two columns, ties included.
//!
//! Pearson of the midranks, with sums in integers:
//!
//! ```text
//! rho = (sum(2Rx 2Ry) - n (n+1)^2) / sqrt(Dx Dy),    D = (n^3 - n - T) / 3
//! ```
//!
//! The shortcut `1 - 6 sum(d^2) / (n (n^2 - 1))` is wrong with ties and is not used anywhere. With a binary label ties
//! dominate and `|rho|` cannot reach 1 (0.693 at a base rate of 0.2): see [`crate::rank_sum`].
//!
//! # References
//!
//! Spearman 1904, *Am. J. Psychology* 15:72; Kendall & Gibbons 1990, chapter 3 (ties).

use crate::distributions::tails;
use crate::ranks::rank::Midranks;

/// Spearman's rho of `x` and `y`, both `[n]`. Cost `O(n log n)`.
///
/// Undefined (`None`) for fewer than two values, when a column is constant, or when one holds a `NaN`.
///
/// # Panics
///
/// If the lengths differ.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "both columns have one value a token");
    spearman_of_ranks(&Midranks::new(x)?, &Midranks::new(y)?)
}

/// Spearman's rho of two ranked columns, for callers that correlate one column with many.
///
/// Undefined (`None`) when a column is constant or has fewer than two values.
///
/// # Panics
///
/// If the lengths differ.
pub fn spearman_of_ranks(x: &Midranks, y: &Midranks) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "both columns have one value a token");
    let pairs = x.twice().iter().zip(y.twice());
    // n doubled ranks of at most 2n: the sum is at most 4 n^3.
    let products = if x.len() <= 1 << 20 {
        // A doubled rank has 22 bits then: said in 32, the products run in vectors.
        u128::from(pairs.fold(0_u64, |sum, (&a, &b)| sum.wrapping_add(u64::from(a as u32) * u64::from(b as u32))))
    } else {
        pairs.map(|(&a, &b)| u128::from(a) * u128::from(b)).sum()
    };
    let n = x.len() as u128;
    let centre = n * (n + 1) * (n + 1);
    let numerator = if products >= centre { (products - centre) as f64 } else { -((centre - products) as f64) };
    rho_from_sums(numerator, x.spread(), y.spread())
}

/// The one last division: `numerator / sqrt(dx dy)`, clipped to `[-1, 1]`; `None` when a spread is 0.
///
/// For `dx == dy` the root is exact, so `rho(x, x)` is 1 and not nearly 1.
pub(crate) fn rho_from_sums(numerator: f64, dx: u128, dy: u128) -> Option<f64> {
    if dx == 0 || dy == 0 {
        return None;
    }
    Some((numerator / (dx as f64 * dy as f64).sqrt()).clamp(-1.0, 1.0))
}

/// Two-sided p-value of a rank (or partial) correlation: `t = r sqrt(df / (1 - r^2))` against Student's t.
///
/// For Spearman `df = n - 2`. The approximation assumes independent values, which the tokens of a trace are not:
/// use it for parity with other tools, and [`crate::circular_shift`] for claims.
///
/// Undefined (`None`) for `df <= 0`. `|r| = 1` gives 0.
///
/// # References
///
/// Kendall & Stuart 1973, *The Advanced Theory of Statistics* 2, chapter 31; the default of `SciPy`.
pub fn student_p(r: f64, df: f64) -> Option<f64> {
    if df.is_nan() || df <= 0.0 {
        return None;
    }
    tails::student_t_two_sided(r * (df / ((1.0 + r) * (1.0 - r))).sqrt(), df)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_break_the_shortcut_but_not_this() {
        // The shortcut formula gives 0 here.
        assert_eq!(spearman(&[2.0, 1.0, 1.0, 1.0, 1.0], &[1.0, 2.0, 2.0, 2.0, 2.0]), Some(-1.0));
    }

    #[test]
    fn by_hand() {
        // Ranks 1 2 3 4 against 2 1 4 3: sum d^2 = 4, rho = 1 - 24/60.
        let rho = spearman(&[1.0, 2.0, 3.0, 4.0], &[20.0, 10.0, 40.0, 30.0]).expect("defined");
        assert!((rho - 0.6).abs() < 1e-15);
        // scipy 1.17 spearmanr([1, inf, 3, 4], [0, 1, 1, 0])
        let rho = spearman(&[1.0, f64::INFINITY, 3.0, 4.0], &[0.0, 1.0, 1.0, 0.0]).expect("defined");
        assert!((rho - 0.447_213_595_499_957_9).abs() < 1e-15);
    }

    #[test]
    fn undefined_cases() {
        assert_eq!(spearman(&[1.0, 2.0], &[5.0, 5.0]), None);
        assert_eq!(spearman(&[1.0], &[2.0]), None);
        assert_eq!(spearman(&[], &[]), None);
        assert_eq!(spearman(&[1.0, f64::NAN, 2.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(student_p(0.5, 0.0), None);
        assert_eq!(student_p(-1.0, 3.0), Some(0.0));
    }

    #[test]
    fn p_value_of_two_degrees_of_freedom() {
        // df 2: p = 1 - |r|.
        let p = student_p(0.447_213_595_499_957_9, 2.0).expect("defined");
        assert!((p - (1.0 - 0.447_213_595_499_957_9)).abs() < 1e-14);
    }
}
