//! Fisher-z intervals of a rank correlation, with the three standard errors in use.
//!
//! `z = atanh(rho)`, bounds `tanh(z -+ z_c se)`, where `z_c` is the normal critical value:
//!
//! | method | `se^2` | source |
//! | --- | --- | --- |
//! | plain | `1 / (n-3)` | Fisher 1921; what most tools print |
//! | fieller | `1.06 / (n-3)` | Fieller, Hartley & Pearson 1957, *Biometrika* 44:470 |
//! | bonett-wright | `(1 + rho^2/2) / (n-3)` | Bonett & Wright 2000, *Psychometrika* 65:23 |
//!
//! With `n` = independent traces and a token-level rho this is a convention and not a sampling theory: print the trace
//! bootstrap ([`crate::bootstrap`]) beside it.

use crate::intervals::confidence::Confidence;

/// `atanh(rho) = ln((1 + rho)/(1 - rho))/2`, odd to the last bit (the `atanh` of the standard library is not: it loses
/// digits for negative arguments near -1). Infinite at 1 and -1.
pub fn fisher_z(rho: f64) -> f64 {
    let size = rho.abs();
    (0.5 * (2.0 * size / (1.0 - size)).ln_1p()).copysign(rho)
}

epikv_words::words! {
    /// Which standard error of `z` is used.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum FisherMethod {
        /// Standard error `1/sqrt(n-3)` of Fisher's z.
        #[default]
        Plain = "fisher",
        /// `sqrt(1.06/(n-3))`.
        Fieller = "fieller",
        /// `sqrt((1+rho^2/2)/(n-3))`.
        BonettWright = "bonett-wright",
    }
}

impl FisherMethod {
    /// `se` of `z`; `None` for `n_eff <= 3`.
    pub fn standard_error(self, rho: f64, n_eff: u64) -> Option<f64> {
        let df = n_eff.checked_sub(3).filter(|&df| df > 0)? as f64;
        let inflation = match self {
            Self::Plain => 1.0,
            Self::Fieller => 1.06,
            Self::BonettWright => 1.0 + rho * rho / 2.0,
        };
        Some((inflation / df).sqrt())
    }
}

/// A Fisher-z interval. Every part is `None` where it is undefined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FisherInterval {
    /// `atanh(rho)`; `None` for `|rho| >= 1`.
    pub z: Option<f64>,
    /// Standard error of `z`; `None` for `n_eff <= 3` or `|rho| >= 1`.
    pub se_z: Option<f64>,
    /// Lower bound of rho.
    pub lo: Option<f64>,
    /// Upper bound of rho.
    pub hi: Option<f64>,
    /// `tanh(z_c se)` at `rho = 0`: the half-width of an interval centred on 0; `None` for `n_eff <= 3`.
    pub half_width_at_zero: Option<f64>,
}

/// The interval of `rho` over `n_eff` independent units (traces, not tokens).
///
/// Undefined parts are `None`: the bounds for `n_eff <= 3` and for `|rho| >= 1`, where `z` is infinite (they are
/// *not* -1 and 1).
///
/// # References
///
/// Module documentation.
pub fn fisher_interval(rho: f64, n_eff: u64, confidence: Confidence, method: FisherMethod) -> FisherInterval {
    let critical = confidence.z();
    let z = (rho.abs() < 1.0).then(|| fisher_z(rho));
    let se_z = z.and_then(|_| method.standard_error(rho, n_eff));
    let bound = |sign: f64| Some((z? + sign * critical * se_z?).tanh());
    FisherInterval {
        z,
        se_z,
        lo: bound(-1.0),
        hi: bound(1.0),
        half_width_at_zero: method.standard_error(0.0, n_eff).map(|se| (critical * se).tanh()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: Option<f64>, want: f64, tolerance: f64) {
        assert!((got.expect("defined") - want).abs() < tolerance, "{got:?} against {want}");
    }

    #[test]
    fn bonett_wright_example_of_statpsych() {
        // R statpsych, ci.spear: n = 15, rho = 0.8699639 -> 0.5840951, 0.9638297.
        let ci = fisher_interval(0.869_963_9, 15, Confidence::P95, FisherMethod::BonettWright);
        near(ci.lo, 0.584_095_1, 1e-7);
        near(ci.hi, 0.963_829_7, 1e-7);
    }

    #[test]
    fn half_widths_of_the_methods() {
        for (method, want) in [(FisherMethod::Plain, 0.1964), (FisherMethod::Fieller, 0.2021)] {
            let ci = fisher_interval(0.09, 100, Confidence::P95, method);
            near(ci.half_width_at_zero, want, 5e-5);
        }
    }

    #[test]
    fn fisher_z_is_odd() {
        for rho in [0.0, 0.3, 0.999_999, 1.0 - 1e-12] {
            assert_eq!(fisher_z(-rho).to_bits(), (-fisher_z(rho)).to_bits());
        }
        assert!((fisher_z(0.5) - 3.0_f64.ln() / 2.0).abs() < 1e-15);
    }

    #[test]
    fn undefined_bounds() {
        let few = fisher_interval(0.2, 3, Confidence::P95, FisherMethod::Plain);
        assert!(few.z.is_some());
        assert_eq!((few.se_z, few.lo, few.hi, few.half_width_at_zero), (None, None, None, None));
        let one = fisher_interval(-1.0, 50, Confidence::P95, FisherMethod::Plain);
        assert_eq!((one.z, one.lo, one.hi), (None, None, None));
        assert!(one.half_width_at_zero.is_some());
    }
}
