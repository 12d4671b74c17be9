//! Do two signals correlate differently with the same label? Three tests of `r_xy = r_zy` on one sample.
//!
//! `x` and `z` are the two signals, `y` the label, `r_xz` the correlation between the signals, `n` the independent units
//! (traces). The tests are derived for Pearson's r and used for rho as an approximation; per-trace differences
//! ([`crate::paired`]) need no model of the dependence and come first.
//!
//! ```text
//! Williams  t = (r_xy - r_zy) sqrt((n-1)(1+r_xz) / (2 (n-1)/(n-3) |R| + rbar^2 (1-r_xz)^3)),   df = n - 3
//!           |R| = 1 - r_xy^2 - r_zy^2 - r_xz^2 + 2 r_xy r_zy r_xz,   rbar = (r_xy + r_zy)/2
//! Meng      z = (z_xy - z_zy) sqrt((n-3) / (2 (1-r_xz) h))
//!           h = (1 - f q)/(1 - q),   q = (r_xy^2 + r_zy^2)/2,   f = min(1, (1-r_xz)/(2 (1-q)))
//! Steiger   z = (z_xy - z_zy) sqrt((n-3) / (2 - 2s)),   s = psi / (1 - rbar^2)^2
//!           psi = r_xz (1 - 2 rbar^2) - rbar^2 (1 - 2 rbar^2 - r_xz^2)/2
//! ```
//!
//! # References
//!
//! Williams 1959, *JRSS B* 21:396, in the form of Steiger 1980, *Psychological Bulletin* 87:245, equation 7; Meng,
//! Rosenthal & Rubin 1992, *Psychological Bulletin* 111:172, equations 1-3; Steiger 1980, equation 14 with averaged r.

use crate::distributions::tails;
use crate::intervals::fisher::fisher_z;

/// A statistic with its two-sided p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The statistic.
    pub statistic: f64,
    /// Its two-sided p-value.
    pub p: f64,
}

/// The three tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DependentCorrelations {
    /// Williams' t.
    pub williams: Option<Test>,
    /// Degrees of freedom of Williams' t, `n - 3`.
    pub williams_df: u64,
    /// Meng, Rosenthal and Rubin's z.
    pub meng: Option<Test>,
    /// Steiger's z with averaged r.
    pub steiger: Option<Test>,
}

/// Compares `r_xy` with `r_zy`, given `r_xz`, over `n` independent units.
///
/// Undefined (`None`) for `n <= 3` or a coefficient outside `[-1, 1]`. A single test is `None` where its formula has no
/// finite value (`|r_xy| = 1` or `|r_zy| = 1` for the z tests, `r_xz = 1` for the same signal twice).
pub fn dependent_correlations(r_xy: f64, r_zy: f64, r_xz: f64, n: u64) -> Option<DependentCorrelations> {
    if n <= 3 || [r_xy, r_zy, r_xz].iter().any(|r| !(-1.0..=1.0).contains(r)) {
        return None;
    }
    let df = n - 3;
    let z_test =
        |statistic: f64| statistic.is_finite().then(|| Test { statistic, p: tails::normal_two_sided(statistic) });
    let t = if r_xz < 1.0 {
        williams(r_xy, r_zy, r_xz, n as f64)
    } else {
        f64::NAN // the same signal twice
    };
    let p = t.is_finite().then(|| tails::student_t_two_sided(t, df as f64)).flatten();
    Some(DependentCorrelations {
        williams: p.map(|p| Test { statistic: t, p }),
        williams_df: df,
        meng: z_test(meng(r_xy, r_zy, r_xz, df as f64)),
        steiger: z_test(steiger(r_xy, r_zy, r_xz, df as f64)),
    })
}

fn williams(r_xy: f64, r_zy: f64, r_xz: f64, n: f64) -> f64 {
    let determinant = 1.0 - r_xy * r_xy - r_zy * r_zy - r_xz * r_xz + 2.0 * r_xy * r_zy * r_xz;
    let mean = f64::midpoint(r_xy, r_zy);
    let denominator = 2.0 * (n - 1.0) / (n - 3.0) * determinant + mean * mean * (1.0 - r_xz).powi(3);
    (r_xy - r_zy) * ((n - 1.0) * (1.0 + r_xz) / denominator).sqrt()
}

fn meng(r_xy: f64, r_zy: f64, r_xz: f64, df: f64) -> f64 {
    let q = f64::midpoint(r_xy * r_xy, r_zy * r_zy);
    let f = ((1.0 - r_xz) / (2.0 * (1.0 - q))).min(1.0);
    let h = (1.0 - f * q) / (1.0 - q);
    (fisher_z(r_xy) - fisher_z(r_zy)) * (df / (2.0 * (1.0 - r_xz) * h)).sqrt()
}

fn steiger(r_xy: f64, r_zy: f64, r_xz: f64, df: f64) -> f64 {
    let square = f64::midpoint(r_xy, r_zy).powi(2);
    let psi = r_xz * (1.0 - 2.0 * square) - 0.5 * square * (1.0 - 2.0 * square - r_xz * r_xz);
    let s = psi / (1.0 - square).powi(2);
    (fisher_z(r_xy) - fisher_z(r_zy)) * (df / (2.0 - 2.0 * s)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_of_psych() {
        // R psych 2.2.9: r.test(n, r12, r13, r23)
        let got = dependent_correlations(0.4, 0.5, 0.1, 103).expect("defined");
        let t = got.williams.expect("finite");
        assert!((t.statistic + 0.891_279_904_760_541).abs() < 1e-13);
        assert!((t.p - 0.374_918_517_491_256).abs() < 1e-13);
        let t = dependent_correlations(0.176, -0.09, -0.25, 352).and_then(|d| d.williams).expect("finite");
        assert!((t.statistic - 3.193_255_955_346_38).abs() < 1e-12);
    }

    #[test]
    fn equal_correlations_do_not_differ() {
        let got = dependent_correlations(0.3, 0.3, 0.2, 50).expect("defined");
        for test in [got.williams, got.meng, got.steiger] {
            assert_eq!(test.map(|t| (t.statistic, t.p)), Some((0.0, 1.0)));
        }
    }

    #[test]
    fn undefined() {
        assert_eq!(dependent_correlations(0.1, 0.2, 0.3, 3), None);
        assert_eq!(dependent_correlations(0.1, 1.2, 0.3, 30), None);
        let same = dependent_correlations(0.3, 0.3, 1.0, 30).expect("n > 3");
        assert_eq!((same.williams, same.meng), (None, None));
        let one = dependent_correlations(1.0, 0.3, 0.3, 30).expect("n > 3");
        assert_eq!((one.meng, one.steiger), (None, None));
    }
}
