//! A checked confidence level.

use crate::distributions::tails;
use crate::error::{Error, Result};

/// A confidence level strictly between 0 and 1, such as 0.95.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %, the level of every interval unless another is asked for.
    pub const P95: Self = Self(0.95);

    /// Checks a level.
    ///
    /// # Errors
    ///
    /// [`Error::Confidence`] unless `0 < level < 1`.
    pub fn new(level: f64) -> Result<Self> {
        if level > 0.0 && level < 1.0 { Ok(Self(level)) } else { Err(Error::Confidence { got: level }) }
    }

    /// The level itself.
    pub fn level(self) -> f64 {
        self.0
    }

    /// `alpha = 1 - level`, what both tails share.
    pub fn alpha(self) -> f64 {
        1.0 - self.0
    }

    /// The normal critical value `Phi^-1(1 - alpha/2)`; 1.959964 at 95 %.
    pub fn z(self) -> f64 {
        -tails::normal_quantile(self.alpha() / 2.0)
    }

    /// The critical value of Student's t with `df` degrees of freedom; `None` for `df <= 0`.
    pub fn t(self, df: f64) -> Option<f64> {
        tails::student_t_critical(self.alpha(), df)
    }
}

impl Default for Confidence {
    fn default() -> Self {
        Self::P95
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values() {
        assert!((Confidence::P95.z() - 1.959_963_984_540_054).abs() < 1e-14);
        let t = Confidence::P95.t(10.0).expect("df > 0");
        assert!((t - 2.228_138_851_986_274).abs() < 1e-13);
        assert_eq!(Confidence::P95.t(0.0), None);
    }

    #[test]
    fn refuses_zero_one_and_nan() {
        for level in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(Confidence::new(level).is_err());
        }
    }
}
