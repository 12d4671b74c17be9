//! Tail probabilities of the normal, Student's t and chi-squared distributions, good to about 1e-14.
//!
//! # References
//!
//! Abramowitz & Stegun 1964, sections 26.4 and 26.7.

use statrs::function::gamma::gamma_ur;

use crate::distributions::incomplete_beta::{beta_quantile, beta_reg};
use crate::distributions::normal::erfc;
pub use crate::distributions::normal::{normal_cdf, normal_quantile, normal_sf, normal_two_sided};

/// `P(X > x)` for chi-squared with `df` degrees of freedom. `None` for a negative `x` or `df == 0`.
pub fn chi_squared_sf(x: f64, df: u32) -> Option<f64> {
    if df == 0 || x.is_nan() || x < 0.0 {
        return None;
    }
    if df == 1 {
        return Some(erfc((x / 2.0).sqrt()));
    }
    Some(if x == 0.0 { 1.0 } else { gamma_ur(f64::from(df) / 2.0, x / 2.0) })
}

/// Two-sided p-value of Student's t: `I_{df/(df+t^2)}(df/2, 1/2)`. An infinite `t` gives 0.
///
/// Undefined (`None`) for `df <= 0` or a `NaN` statistic.
pub fn student_t_two_sided(t: f64, df: f64) -> Option<f64> {
    if t.is_nan() || df.is_nan() || df <= 0.0 {
        return None;
    }
    let t2 = t * t;
    if t2.is_infinite() {
        return Some(0.0);
    }
    Some(beta_reg(df / 2.0, 0.5, df / (df + t2), t2 / (df + t2)))
}

/// One-sided `P(T > t)` for Student's t; `None` as for [`student_t_two_sided`].
pub fn student_t_sf(t: f64, df: f64) -> Option<f64> {
    let half = student_t_two_sided(t, df)? / 2.0;
    Some(if t >= 0.0 { half } else { 1.0 - half })
}

/// The `t > 0` that leaves `alpha` in both tails together; `None` for `df <= 0` or `alpha` outside (0, 1).
pub fn student_t_critical(alpha: f64, df: f64) -> Option<f64> {
    if df.is_nan() || df <= 0.0 || !(alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    let (x, y) = beta_quantile(alpha, df / 2.0, 0.5);
    Some((df * y / x).sqrt())
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    fn close(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance * want.abs().max(1e-300), "{got} against {want}");
    }

    #[test]
    fn student_t_known_values() {
        // df 1: 1 - 2 atan(t)/pi; df 2: 1 - t/sqrt(2 + t^2).
        for t in [1e-9, 0.3, 1.0, 12.5] {
            close(student_t_two_sided(t, 1.0).expect("df > 0"), 1.0 - 2.0 * f64::atan(t) / PI, 1e-13);
            close(student_t_two_sided(t, 2.0).expect("df > 0"), 1.0 - t / (2.0 + t * t).sqrt(), 1e-13);
        }
        assert_eq!(student_t_two_sided(0.0, 5.0), Some(1.0));
        assert_eq!(student_t_two_sided(f64::INFINITY, 5.0), Some(0.0));
        assert_eq!(student_t_two_sided(1.0, 0.0), None);
    }

    #[test]
    fn chi_squared_known_values() {
        // df 2: exp(-x/2); df 1: the normal tail.
        close(chi_squared_sf(3.0, 2).expect("df > 0"), (-1.5_f64).exp(), 1e-13);
        close(chi_squared_sf(4.0, 1).expect("df > 0"), normal_two_sided(2.0), 1e-14);
        assert_eq!(chi_squared_sf(0.0, 3), Some(1.0));
        assert_eq!((chi_squared_sf(-1.0, 3), chi_squared_sf(1.0, 0)), (None, None));
    }
}
