//! `McNemar`'s test: do two policies answer the same problems right equally often?
//!
//! Only discordant problems count: `b` that only A answers, `c` that only B answers. Under equality
//! `min(b, c) ~ Binomial(b + c, 1/2)`.
//!
//! | field | formula |
//! | --- | --- |
//! | `p_exact` | `min(1, 2 P(X <= min(b, c)))` |
//! | `p_mid` | `2 P(X <= min) - P(X = min)`; for `b = c` `1 - P(X = b)/2` |
//! | `chi2` | `(b - c)^2 / (b + c)`, one degree of freedom |
//! | `chi2_cc` | `(abs(b - c) - 1)^2 / (b + c)`, continuity-corrected |
//!
//! `p_exact` is the one to print, `p_mid` beside it. For `b = c > 0` the corrected statistic is `1 / (b + c)`, as in
//! statsmodels; R leaves the correction out there and gives 0.
//!
//! # References
//!
//! `McNemar` 1947, *Psychometrika* 12:153; Edwards 1948, *Psychometrika* 13:185 (correction); Fagerland, Lydersen &
//! Laake 2013, *BMC Medical Research Methodology* 13:91 (mid-p).

use crate::distributions::discrete::binomial_half;
use crate::distributions::tails;

/// The four forms of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct McNemar {
    /// Exact binomial p-value; 1 without discordant problems.
    pub p_exact: f64,
    /// Mid-p value; 1 without discordant problems.
    pub p_mid: f64,
    /// Chi-squared; `None` without discordant problems.
    pub chi2: Option<f64>,
    /// Its p-value.
    pub p_chi2: Option<f64>,
    /// Continuity-corrected chi-squared; `None` without discordant problems.
    pub chi2_cc: Option<f64>,
    /// Its p-value.
    pub p_cc: Option<f64>,
}

/// The test for `only_a` problems that only A answers and `only_b` that only B answers. Cost `O(only_a + only_b)`.
///
/// The chi-squared parts are undefined (`None`) without discordant problems.
pub fn mcnemar(only_a: u64, only_b: u64) -> McNemar {
    let n = only_a + only_b;
    if n == 0 {
        return McNemar { p_exact: 1.0, p_mid: 1.0, chi2: None, p_chi2: None, chi2_cc: None, p_cc: None };
    }
    let (cdf, pmf) = binomial_half(only_a.min(only_b), n);
    let difference = only_a.abs_diff(only_b) as f64;
    let chi2 = difference * difference / n as f64;
    let chi2_cc = (difference - 1.0).powi(2) / n as f64;
    McNemar {
        p_exact: (2.0 * cdf).min(1.0),
        p_mid: if only_a == only_b { 1.0 - pmf / 2.0 } else { (2.0 * cdf).min(1.0) - pmf },
        chi2: Some(chi2),
        p_chi2: tails::chi_squared_sf(chi2, 1),
        chi2_cc: Some(chi2_cc),
        p_cc: tails::chi_squared_sf(chi2_cc, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_against_five() {
        // R: mcnemar.test -> X-squared = 2.1176, p = 0.1456; binom.test(5, 17) -> 0.1434631
        let test = mcnemar(12, 5);
        assert!((test.chi2_cc.expect("discordant") - 36.0 / 17.0).abs() < 1e-15);
        assert!((test.p_cc.expect("discordant") - 0.145_61).abs() < 5e-6);
        assert!((test.p_exact - 2.0 * 9402.0 / 131_072.0).abs() < 1e-14);
        assert!((test.p_mid - (2.0 * 9402.0 - 6188.0) / 131_072.0).abs() < 1e-14);
        assert_eq!(mcnemar(5, 12), test);
    }

    #[test]
    fn equal_counts_and_none() {
        let test = mcnemar(2, 2);
        assert!((test.p_exact - 1.0).abs() < 1e-15);
        assert!((test.p_mid - (1.0 - 6.0 / 32.0)).abs() < 1e-15);
        let none = mcnemar(0, 0);
        assert_eq!((none.p_exact, none.p_mid, none.chi2), (1.0, 1.0, None));
    }
}
