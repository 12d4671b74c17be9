//! Intervals for a share of right answers.
//!
//! With `p = s/n`, `z` the normal critical value and `alpha` the share outside:
//!
//! | name | bounds |
//! | --- | --- |
//! | Wilson | `(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)` |
//! | Clopper-Pearson | `alpha/2` quantile of `Beta(s, n-s+1)`, `1 - alpha/2` quantile of `Beta(s+1, n-s)` |
//! | Agresti-Coull | `q -+ z sqrt(q(1-q)/(n+z^2))`, `q = (s + z^2/2)/(n + z^2)`, cut to `[0, 1]` |
//!
//! Wilson is the one to print. 72 of 100 is 62.5 to 79.9 %: two policies one problem apart can't be told apart.
//!
//! # References
//!
//! Wilson 1927, *JASA* 22:209; Clopper & Pearson 1934, *Biometrika* 26:404; Agresti & Coull 1998, *American
//! Statistician* 52:119; Brown, Cai & `DasGupta` 2001, *Statistical Science* 16:101.

use crate::distributions::incomplete_beta::beta_quantile;
use crate::intervals::confidence::Confidence;

/// Lower and upper bound.
pub type Bounds = (f64, f64);

/// Standard error of a share, `sqrt(p (1-p) / n)`. Undefined (`None`) without trials or with more successes than trials.
pub fn standard_error(successes: u64, n: u64) -> Option<f64> {
    let p = share(successes, n)?;
    Some((p * (1.0 - p) / n as f64).sqrt())
}

/// Wilson's score interval. Undefined (`None`) without trials or with more successes than trials.
pub fn wilson(successes: u64, n: u64, confidence: Confidence) -> Option<Bounds> {
    let p = share(successes, n)?;
    let (n, z2) = (n as f64, confidence.z().powi(2));
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = (z2 * (p * (1.0 - p) / n + z2 / (4.0 * n * n))).sqrt() / (1.0 + z2 / n);
    Some((if successes == 0 { 0.0 } else { centre - half }, if p >= 1.0 { 1.0 } else { centre + half }))
}

/// Clopper-Pearson's exact interval. Undefined (`None`) without trials or with more successes than trials.
pub fn clopper_pearson(successes: u64, n: u64, confidence: Confidence) -> Option<Bounds> {
    share(successes, n)?;
    let (s, f, tail) = (successes as f64, (n - successes) as f64, confidence.alpha() / 2.0);
    let lo = if successes == 0 { 0.0 } else { beta_quantile(tail, s, f + 1.0).0 };
    // The upper bound is 1 minus the lower bound of the failures.
    let hi = if successes == n { 1.0 } else { beta_quantile(tail, f, s + 1.0).1 };
    Some((lo, hi))
}

/// Agresti and Coull's interval. Undefined (`None`) without trials or with more successes than trials.
pub fn agresti_coull(successes: u64, n: u64, confidence: Confidence) -> Option<Bounds> {
    share(successes, n)?;
    let z = confidence.z();
    let trials = n as f64 + z * z;
    let q = (successes as f64 + z * z / 2.0) / trials;
    let half = z * (q * (1.0 - q) / trials).sqrt();
    Some(((q - half).max(0.0), (q + half).min(1.0)))
}

fn share(successes: u64, n: u64) -> Option<f64> {
    (n > 0 && successes <= n).then(|| successes as f64 / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: Option<Bounds>, want: Bounds) {
        let got = got.expect("defined");
        assert!((got.0 - want.0).abs() < 1e-10 && (got.1 - want.1).abs() < 1e-10, "{got:?} against {want:?}");
    }

    #[test]
    fn eleven_of_thirty() {
        // statsmodels 0.15 proportion_confint(11, 30, method=...)
        near(wilson(11, 30, Confidence::P95), (0.218_739_208_061, 0.544_864_363_452));
        near(clopper_pearson(11, 30, Confidence::P95), (0.199_298_625_012, 0.561_440_150_988));
        near(agresti_coull(11, 30, Confidence::P95), (0.218_117_720_088, 0.545_485_851_425));
    }

    #[test]
    fn ends_are_exact() {
        for f in [wilson, clopper_pearson, agresti_coull] {
            assert_eq!(f(0, 30, Confidence::P95).map(|b| b.0), Some(0.0));
            assert_eq!(f(30, 30, Confidence::P95).map(|b| b.1), Some(1.0));
            assert_eq!(f(0, 0, Confidence::P95), None);
            assert_eq!(f(2, 1, Confidence::P95), None);
        }
        assert_eq!(standard_error(30, 30), Some(0.0));
        // 1 - (alpha/2)^(1/n)
        near(clopper_pearson(0, 5, Confidence::P95), (0.0, 1.0 - 0.025_f64.powf(0.2)));
    }
}
