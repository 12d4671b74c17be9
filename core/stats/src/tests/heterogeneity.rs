//! Do several groups, such as problem sets or models, have the same mean? And the mean over groups where they do not.
//!
//! With group means `m_g`, standard errors `s_g` and `w_g = 1 / s_g^2` over `G` groups:
//!
//! ```text
//! Q     = sum w_g (m_g - mbar)^2,  mbar = sum w_g m_g / sum w_g      chi-squared with G - 1 df if all are equal
//! I^2   = max(0, (Q - (G-1)) / Q)                                    share of the variation that is between groups
//! tau^2 = max(0, (Q - (G-1)) / (sum w - sum w^2 / sum w))
//! mean  = sum v_g m_g / sum v_g,   v_g = 1 / (s_g^2 + tau^2),        se^2 = 1 / sum v_g
//! ```
//!
//! For a few groups of a few members `Q` is a rough test: the standard errors are themselves estimates.
//!
//! # References
//!
//! Cochran 1954, *Biometrics* 10:101; Higgins & Thompson 2002, *Statistics in Medicine* 21:1539; `DerSimonian` & Laird 1986,
//! *Controlled Clinical Trials* 7:177.

use crate::distributions::tails;
use crate::intervals::confidence::Confidence;
use crate::moments;

/// Several groups together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heterogeneity {
    /// Groups.
    pub n_groups: usize,
    /// Cochran's Q.
    pub q: f64,
    /// Its p-value.
    pub p: f64,
    /// Share of the variation of the means that is between groups, inside `[0, 1)`.
    pub i_squared: f64,
    /// Variance between groups.
    pub tau2: f64,
    /// Mean under random effects.
    pub mean: f64,
    /// Its lower bound, normal.
    pub lo: f64,
    /// Its upper bound.
    pub hi: f64,
}

/// Compares groups; `groups` has a mean and a standard error each.
///
/// Undefined (`None`) for fewer than two groups, or where an error is not positive or a figure not finite.
pub fn heterogeneity(groups: &[(f64, f64)], confidence: Confidence) -> Option<Heterogeneity> {
    let n_groups = groups.len();
    if n_groups < 2 || groups.iter().any(|(mean, se)| !mean.is_finite() || !se.is_finite() || *se <= 0.0) {
        return None;
    }
    let mean_under = |variance: f64| {
        let weights: Vec<f64> = groups.iter().map(|(_, se)| 1.0 / (se * se + variance)).collect();
        let total: f64 = weights.iter().sum();
        let mean = groups.iter().zip(&weights).map(|((mean, _), w)| w * mean).sum::<f64>() / total;
        (mean, weights, total)
    };
    let (common, weights, total) = mean_under(0.0);
    let q: f64 = groups.iter().zip(&weights).map(|((mean, _), w)| w * (mean - common).powi(2)).sum();
    let df = (n_groups - 1) as f64;
    let excess = (q - df).max(0.0);
    let scale = total - weights.iter().map(|w| w * w).sum::<f64>() / total;
    let tau2 = excess / scale;
    let (mean, _, total) = mean_under(tau2);
    let half = confidence.z() / total.sqrt();
    Some(Heterogeneity {
        n_groups,
        q,
        p: tails::chi_squared_sf(q, (n_groups - 1) as u32)?,
        i_squared: if q > 0.0 { excess / q } else { 0.0 },
        tau2,
        mean,
        lo: mean - half,
        hi: mean + half,
    })
}

/// The difference of two means with Welch's t test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Mean of the first less that of the second.
    pub difference: f64,
    /// Its standard error.
    pub se: f64,
    /// Two-sided p-value on Welch's degrees of freedom.
    pub p: f64,
}

/// Compares two independent samples.
///
/// Undefined (`None`) with fewer than two members in one, or without variance in both.
///
/// # References
///
/// Welch 1947, *Biometrika* 34:28.
pub fn welch(a: &[f64], b: &[f64]) -> Option<Difference> {
    let difference = moments::mean(a)? - moments::mean(b)?;
    let [va, vb] = [moments::standard_error(a)?, moments::standard_error(b)?].map(|se| se * se);
    let variance = va + vb;
    if variance <= 0.0 || !variance.is_finite() {
        return None;
    }
    let df = variance * variance / (va * va / (a.len() - 1) as f64 + vb * vb / (b.len() - 1) as f64);
    let se = variance.sqrt();
    Some(Difference { difference, se, p: tails::student_t_two_sided(difference / se, df)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // w = 4, 4; Q = 4/4 + 4/4; tau^2 = (2 - 1) / (8 - 32/8); v = 2, 2.
        let got = heterogeneity(&[(0.0, 0.5), (1.0, 0.5)], Confidence::P95).expect("two groups");
        assert_eq!((got.n_groups, got.q, got.i_squared, got.tau2, got.mean), (2, 2.0, 0.5, 0.25, 0.5));
        assert!((got.hi - 0.5 - 0.5 * Confidence::P95.z()).abs() < 1e-15 && got.lo < 0.0);
        assert!((got.p - tails::normal_two_sided(2.0_f64.sqrt())).abs() < 1e-14);
        let equal = heterogeneity(&[(0.3, 0.1), (0.3, 0.2), (0.3, 0.4)], Confidence::P95).expect("three groups");
        assert_eq!((equal.q, equal.p, equal.i_squared, equal.tau2), (0.0, 1.0, 0.0, 0.0));
    }

    #[test]
    fn scipy_and_the_formulas() {
        // scipy 1.17.1: chi2.sf; the rest by NumPy from the formulas above.
        let groups = [(0.31, 0.08), (-0.05, 0.11), (0.12, 0.06), (0.40, 0.15)];
        let got = heterogeneity(&groups, Confidence::P95).expect("four groups");
        for (got, want) in [
            (got.q, 10.108_054_302_602_167),
            (got.p, 0.017_669_616_066_484),
            (got.i_squared, 0.703_206_976_319_103),
            (got.tau2, 0.019_506_077_593_600),
            (got.mean, 0.182_779_271_628_399),
            (got.lo, 0.015_526_636_206_013),
            (got.hi, 0.350_031_907_050_785),
        ] {
            assert!((got - want).abs() < 1e-12, "{got} against {want}");
        }
        // scipy.stats.ttest_ind([1, 2, 4, 7], [0.5, 3, 2], equal_var=False)
        let got = welch(&[1.0, 2.0, 4.0, 7.0], &[0.5, 3.0, 2.0]).expect("variance");
        for (got, want) in [(got.difference, 1.666_666_666_666_667), (got.p, 0.325_298_780_318_740)] {
            assert!((got - want).abs() < 1e-12, "{got} against {want}");
        }
    }

    #[test]
    fn undefined() {
        assert_eq!(heterogeneity(&[(0.1, 0.2)], Confidence::P95), None);
        assert_eq!(heterogeneity(&[(0.1, 0.2), (0.3, 0.0)], Confidence::P95), None);
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), None);
    }
}
