//! What a number of traces can show: power, smallest detectable rho and traces needed, by Fisher z.
//!
//! With `z = atanh(|rho|)`, `c = Phi^-1(1 - alpha/2)` and `w = Phi^-1(power)`:
//!
//! ```text
//! power           = Phi(z sqrt(n-3) - c) + Phi(-z sqrt(n-3) - c)
//! detectable rho  = tanh((c + w) / sqrt(n-3))
//! traces needed   = ceil(((c + w) / z)^2 + 3)
//! ```
//!
//! # References
//!
//! Cohen 1988, *Statistical Power Analysis*, chapter 3; Fisher 1921.

use crate::distributions::tails::{normal_cdf, normal_quantile};
use crate::intervals::fisher::fisher_z;

/// Two-sided power to see `rho` with `n` independent units at level `alpha`; `alpha` itself for `rho = 0`.
///
/// Undefined (`None`) for `n <= 3`, `|rho| >= 1` or `alpha` outside (0, 1).
pub fn power(rho: f64, n: u64, alpha: f64) -> Option<f64> {
    let (root, c) = (root_df(n)?, critical(alpha)?);
    let shift = effect(rho)? * root;
    Some(normal_cdf(shift - c) + normal_cdf(-shift - c))
}

/// The smallest `|rho|` that `n` independent units show with the given power.
///
/// Undefined (`None`) for `n <= 3` or `alpha` or `power` outside (0, 1).
pub fn min_detectable_rho(n: u64, alpha: f64, power: f64) -> Option<f64> {
    Some((distance(alpha, power)? / root_df(n)?).tanh())
}

/// Independent units needed to show `rho` with the given power.
///
/// Undefined (`None`) for `rho = 0`, `|rho| >= 1`, or `alpha` or `power` outside (0, 1).
pub fn n_for_power(rho: f64, alpha: f64, power: f64) -> Option<u64> {
    let z = effect(rho).filter(|&z| z > 0.0)?;
    Some(((distance(alpha, power)? / z).powi(2) + 3.0).ceil() as u64)
}

fn distance(alpha: f64, power: f64) -> Option<f64> {
    (power > 0.0 && power < 1.0).then(|| critical(alpha)).flatten().map(|c| c + normal_quantile(power))
}

fn critical(alpha: f64) -> Option<f64> {
    (alpha > 0.0 && alpha < 1.0).then(|| -normal_quantile(alpha / 2.0))
}

fn effect(rho: f64) -> Option<f64> {
    (rho.abs() < 1.0).then(|| fisher_z(rho.abs()))
}

fn root_df(n: u64) -> Option<f64> {
    n.checked_sub(3).filter(|&df| df > 0).map(|df| (df as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook() {
        // Fisher-z tables: rho 0.3, alpha 0.05, power 0.8 -> 85.
        assert_eq!(n_for_power(0.3, 0.05, 0.8), Some(85));
        assert_eq!(n_for_power(-0.3, 0.05, 0.8), Some(85));
        assert!((power(0.3, 85, 0.05).expect("n > 3") - 0.8).abs() < 0.005);
        let rho = min_detectable_rho(85, 0.05, 0.8).expect("n > 3");
        assert!(rho < 0.3 && rho > 0.298);
    }

    #[test]
    fn no_effect_has_the_level_as_power() {
        assert!((power(0.0, 50, 0.05).expect("n > 3") - 0.05).abs() < 1e-15);
    }

    #[test]
    fn undefined() {
        assert_eq!(power(0.1, 3, 0.05), None);
        assert_eq!(power(1.0, 30, 0.05), None);
        assert_eq!(n_for_power(0.0, 0.05, 0.8), None);
        assert_eq!(min_detectable_rho(30, 0.0, 0.8), None);
    }
}
