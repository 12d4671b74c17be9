//! Bootstrap intervals from replicates: percentile, basic and `BCa`.
//!
//! Quantiles are of type 7 ([`crate::quantile`]). With `theta` the estimate, `z0` the bias and `a` the acceleration:
//!
//! ```text
//! percentile   q(alpha/2), q(1 - alpha/2)
//! basic        2 theta - q(1 - alpha/2), 2 theta - q(alpha/2)
//! BCa          q(Phi(z0 + (z0 + z)/(1 - a (z0 + z)))) for z = Phi^-1(alpha/2) and Phi^-1(1 - alpha/2)
//! z0           Phi^-1((#{replicate < theta} + #{replicate <= theta}) / 2B)
//! a            sum(u^3) / (6 sum(u^2)^(3/2)),  u_i = mean(jackknife) - jackknife_i
//! ```
//!
//! Replicates come from [`crate::resample`]; the units resampled are traces or problems, never tokens.
//!
//! # References
//!
//! Efron 1987, *JASA* 82:171; Efron & Tibshirani 1993, chapters 13 and 14.

use crate::distributions::tails::{normal_cdf, normal_quantile};
use crate::intervals::confidence::Confidence;
use crate::moments;
use crate::ranks::quantile::{quantile_of_sorted, sorted};

/// Lower and upper bound.
pub type Bounds = (f64, f64);

/// Three intervals from the same replicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BootstrapInterval {
    /// Quantiles of the replicates.
    pub percentile: Bounds,
    /// Percentile reflected about the estimate.
    pub basic: Bounds,
    /// Bias-corrected and accelerated. `None` without a jackknife of at least two different values, and when all
    /// replicates lie on one side of the estimate.
    pub bca: Option<Bounds>,
}

/// Intervals of the estimate `theta` from `replicates` (`[B]`, any order) and leave-one-out `jackknife` values
/// (`[units]`, empty for no `BCa`).
///
/// Undefined (`None`) without replicates or with a `NaN` among them.
pub fn bootstrap_interval(
    theta: f64,
    replicates: &[f64],
    jackknife: &[f64],
    confidence: Confidence,
) -> Option<BootstrapInterval> {
    let sorted = sorted(replicates)?;
    let tail = confidence.alpha() / 2.0;
    let (lo, hi) = (quantile_of_sorted(&sorted, tail)?, quantile_of_sorted(&sorted, 1.0 - tail)?);
    Some(BootstrapInterval {
        percentile: (lo, hi),
        basic: (2.0 * theta - hi, 2.0 * theta - lo),
        bca: bca(theta, &sorted, jackknife, tail),
    })
}

fn bca(theta: f64, sorted: &[f64], jackknife: &[f64], tail: f64) -> Option<Bounds> {
    let acceleration = acceleration(jackknife)?;
    let below = sorted.partition_point(|&r| r < theta);
    let up_to = sorted.partition_point(|&r| r <= theta);
    let bias = normal_quantile((below + up_to) as f64 / (2 * sorted.len()) as f64);
    if !bias.is_finite() {
        return None;
    }
    let level = |z: f64| normal_cdf(bias + (bias + z) / (1.0 - acceleration * (bias + z)));
    let z = normal_quantile(tail);
    Some((quantile_of_sorted(sorted, level(z))?, quantile_of_sorted(sorted, level(-z))?))
}

/// The acceleration; `None` without at least two different jackknife values.
fn acceleration(jackknife: &[f64]) -> Option<f64> {
    let mean = moments::mean(jackknife)?;
    let (cubes, squares) = jackknife.iter().fold((0.0, 0.0), |(cubes, squares), x| {
        let u = mean - x;
        (cubes + u * u * u, squares + u * u)
    });
    (squares > 0.0).then(|| cubes / (6.0 * squares.powf(1.5)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_and_basic_by_hand() {
        let replicates: Vec<f64> = (0..=100_u8).rev().map(f64::from).collect();
        let ci =
            bootstrap_interval(60.0, &replicates, &[], Confidence::new(0.9).expect("in range")).expect("replicates");
        assert!((ci.percentile.0 - 5.0).abs() < 1e-12 && (ci.percentile.1 - 95.0).abs() < 1e-12);
        assert!((ci.basic.0 - 25.0).abs() < 1e-12 && (ci.basic.1 - 115.0).abs() < 1e-12);
        assert_eq!(ci.bca, None);
    }

    #[test]
    fn bca_without_bias_or_skew_is_percentile() {
        let replicates: Vec<f64> = (0..=100_u8).map(f64::from).collect();
        let ci = bootstrap_interval(50.0, &replicates, &[1.0, 2.0, 3.0], Confidence::P95).expect("replicates");
        let bca = ci.bca.expect("jackknife varies");
        assert!((bca.0 - ci.percentile.0).abs() < 1e-10 && (bca.1 - ci.percentile.1).abs() < 1e-10);
    }

    #[test]
    fn undefined() {
        assert_eq!(bootstrap_interval(0.0, &[], &[], Confidence::P95), None);
        let one_side = bootstrap_interval(9.0, &[1.0, 2.0], &[1.0, 2.0], Confidence::P95).expect("replicates");
        assert_eq!(one_side.bca, None);
        let flat = bootstrap_interval(1.5, &[1.0, 2.0], &[1.0, 1.0], Confidence::P95).expect("replicates");
        assert_eq!(flat.bca, None);
    }
}
