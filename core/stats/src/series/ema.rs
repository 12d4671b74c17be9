//! Exponential moving average with an explicit decay.
//!
//! `decay` is the weight of the past: `e_t = decay e_(t-1) + (1 - decay) x_t`. "EMA with 0.9" is ambiguous in the
//! literature; here 0.9 remembers about ten values, and what others call `alpha` is `1 - decay`.
//!
//! | init | `e_0` | elsewhere |
//! | --- | --- | --- |
//! | first | `x_0` | pandas `adjust=False` |
//! | debiased | `x_0`; `e_t = sum(decay^i x_(t-i)) / sum(decay^i)` | pandas `adjust=True` |
//! | zero | `(1 - decay) x_0` | the moments of Adam before correction |

use crate::error::{Error, Result};

/// What the average starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EmaInit {
    /// The first value.
    #[default]
    First,
    /// Nothing: weights are normalised over the values seen.
    Debiased,
    /// Zero.
    Zero,
}

/// The streaming form: push one value, get the average.
#[derive(Debug, Clone, Copy)]
pub struct Ema {
    decay: f64,
    init: EmaInit,
    /// The average; for `Debiased` the weighted sum. `None` before the first value.
    state: Option<f64>,
    /// Sum of the weights seen, for `Debiased`.
    weight: f64,
}

impl Ema {
    /// An average that has seen nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Decay`] unless `0 <= decay < 1`.
    pub fn new(decay: f64, init: EmaInit) -> Result<Self> {
        if !(0.0..1.0).contains(&decay) {
            return Err(Error::Decay { got: decay });
        }
        Ok(Self { decay, init, state: None, weight: 0.0 })
    }

    /// Takes the next value and returns the average.
    ///
    /// Undefined (`None`) from the first non-finite value on, since the average never forgets one.
    pub fn push(&mut self, x: f64) -> Option<f64> {
        let decay = self.decay;
        let average = match self.init {
            EmaInit::First => {
                let next = self.state.map_or(x, |e| decay * e + (1.0 - decay) * x);
                self.state = Some(next);
                next
            }
            EmaInit::Zero => {
                let next = decay * self.state.unwrap_or(0.0) + (1.0 - decay) * x;
                self.state = Some(next);
                next
            }
            EmaInit::Debiased => {
                let sum = decay * self.state.unwrap_or(0.0) + x;
                self.state = Some(sum);
                self.weight = decay * self.weight + 1.0;
                sum / self.weight
            }
        };
        average.is_finite().then_some(average)
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.state = None;
        self.weight = 0.0;
    }
}

/// The average at every position of `x` (`[n]`), `[n]`; bit-equal to pushing the values one by one.
///
/// # Errors
///
/// As [`Ema::new`].
pub fn ema(x: &[f64], decay: f64, init: EmaInit) -> Result<Vec<Option<f64>>> {
    let mut ema = Ema::new(decay, init)?;
    Ok(x.iter().map(|&v| ema.push(v)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let of = |init| ema(&[4.0, 8.0], 0.75, init).expect("decay in range");
        assert_eq!(of(EmaInit::First), [Some(4.0), Some(5.0)]);
        assert_eq!(of(EmaInit::Zero), [Some(1.0), Some(2.75)]);
        // (8 + 0.75 * 4) / 1.75
        assert_eq!(of(EmaInit::Debiased), [Some(4.0), Some(11.0 / 1.75)]);
    }

    #[test]
    fn decay_is_checked_and_infinity_undefined() {
        assert!(Ema::new(1.0, EmaInit::First).is_err());
        let got = ema(&[1.0, f64::INFINITY, 1.0], 0.5, EmaInit::First).expect("decay in range");
        assert_eq!(got, [Some(1.0), None, None]);
    }
}
