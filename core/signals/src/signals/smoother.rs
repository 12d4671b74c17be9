//! Smoothers of a series, value by value and causal.
//!
//! | name | value at `t` | state |
//! | --- | --- | --- |
//! | `raw` | `x(t)` | none |
//! | `meanN` | mean of the last `N` values, that of `t` included | a window |
//! | `ema` | `e(t) = decay e(t-1) + (1 - decay) x(t)`, `e` of the first value = that value | one number |
//! | `zN` | `(x(t) - mean) / (sd + 1e-6)` over the same window, `sd` of the population; 0 below two values | a window |
//! | `maxN` | largest of the last `N` values, that of `t` included | a window |
//!
//! The constants scale together: `decay = 1 - 6.4/N`, which is 0.9 at the published `N` = 64 (a memory of `N/6.4` values),
//! and 0 below `N` = 7. Windows start with what there is, and an undefined value is undefined and leaves no trace.
//!
//! # References
//!
//! `EpiKV` (arXiv 2606.26472), section 3 (mean and average), section 4 (z-score).

use epikv_stats::{Ema, EmaInit, Rolling, RollingSpec};

use crate::error::{Error, Result};

/// Tokens of the published window.
pub const DEFAULT_WINDOW: usize = 64;

/// Window over memory of the average: 64 tokens beside a decay of 0.9.
const WINDOW_TO_MEMORY: f64 = 6.4;

/// A way to smooth a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Smoother {
    /// As it is.
    Raw,
    /// Mean of the window.
    Mean,
    /// Exponential moving average.
    Ema,
    /// Distance from the window's mean in deviations.
    Z,
    /// Largest of the window.
    Max,
}

impl Smoother {
    /// Every smoother, in the order of the tables.
    pub const ALL: [Self; 5] = [Self::Raw, Self::Mean, Self::Ema, Self::Z, Self::Max];

    /// The name that files and tables show, with a window of `window` tokens: `raw`, `mean64`, `ema`, `z64`, `max64`.
    pub fn name(self, window: usize) -> String {
        match self {
            Self::Raw => "raw".to_owned(),
            Self::Mean => format!("mean{window}"),
            Self::Ema => "ema".to_owned(),
            Self::Z => format!("z{window}"),
            Self::Max => format!("max{window}"),
        }
    }

    /// The smoother of a name. `mean`, `z` and `max` may stand without their window.
    ///
    /// # Errors
    /// If the name is not known, or names another window.
    pub fn parse(text: &str, window: usize) -> Result<Self> {
        let known = |smoother: &Self| text == smoother.name(window) || text == smoother.stem();
        let unknown = || Error::UnknownSmoothing { given: text.to_owned(), window };
        Self::ALL.into_iter().find(known).ok_or_else(unknown)
    }

    fn stem(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Mean => "mean",
            Self::Ema => "ema",
            Self::Z => "z",
            Self::Max => "max",
        }
    }

    /// The decay of the average beside a window of `window` tokens.
    pub fn decay(window: usize) -> f64 {
        (1.0 - WINDOW_TO_MEMORY / window as f64).max(0.0)
    }

    /// The smoother at work, with nothing seen yet.
    ///
    /// # Errors
    /// If the window is empty.
    pub fn start(self, window: usize) -> Result<Smoothing> {
        let rolling = || RollingSpec::new(window).map(Rolling::new);
        Ok(Smoothing(match self {
            Self::Raw => State::Raw,
            Self::Mean => State::Mean(rolling()?),
            Self::Ema => State::Ema(Ema::new(Self::decay(window), EmaInit::First)?),
            Self::Z => State::Z(rolling()?),
            Self::Max => State::Max(rolling()?),
        }))
    }
}

/// A smoother at work: values go in one by one.
#[derive(Debug, Clone)]
pub struct Smoothing(State);

#[derive(Debug, Clone)]
enum State {
    Raw,
    Mean(Rolling),
    Ema(Ema),
    Z(Rolling),
    Max(Rolling),
}

impl Smoothing {
    /// Takes the next value and gives the smoothed one. An undefined value gives an undefined one and is not remembered.
    pub fn push(&mut self, value: Option<f32>) -> Option<f32> {
        let raw = value.filter(|v| v.is_finite())?;
        let x = f64::from(raw);
        match &mut self.0 {
            State::Raw => Some(raw),
            State::Mean(rolling) => rolling.push(x).map(|point| point.mean as f32),
            State::Ema(ema) => ema.push(x).map(|average| average as f32),
            State::Z(rolling) => rolling.push(x).map(|point| point.z as f32),
            State::Max(rolling) => {
                rolling.push(x)?;
                rolling.values().iter().copied().reduce(f64::max).map(|largest| largest as f32)
            }
        }
    }

    /// Forgets the series so far.
    pub fn reset(&mut self) {
        match &mut self.0 {
            State::Raw => {}
            State::Mean(rolling) | State::Z(rolling) | State::Max(rolling) => rolling.reset(),
            State::Ema(ema) => ema.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use epikv_words::Hint;

    use super::*;

    fn smoothed(smoother: Smoother, window: usize, values: &[f32]) -> Vec<f32> {
        let mut smoothing = smoother.start(window).expect("a window");
        values.iter().map(|&v| smoothing.push(Some(v)).expect("finite")).collect()
    }

    #[test]
    fn by_hand() {
        let x = [1.0, 2.0, 6.0];
        assert_eq!(smoothed(Smoother::Raw, 2, &x), x);
        assert_eq!(smoothed(Smoother::Mean, 2, &x), [1.0, 1.5, 4.0]);
        // A window of 64 has a decay of 0.9: 1, 0.9 + 0.2, 0.9 * 1.1 + 0.6.
        assert_eq!(smoothed(Smoother::Ema, 64, &x), [1.0, 1.1, 1.59]);
        assert_eq!(smoothed(Smoother::Max, 2, &[1.0, 3.0, 2.0, -4.0, -5.0]), [1.0, 3.0, 3.0, 2.0, -4.0]);
        let z = smoothed(Smoother::Z, 2, &x);
        assert!(z[0].to_bits() == 0 && (z[1] - 1.0).abs() < 1e-5 && (z[2] - 1.0).abs() < 1e-5, "{z:?}");
    }

    #[test]
    fn constants_scale_with_the_window() {
        assert_eq!(Smoother::decay(64).to_bits(), 0.9_f64.to_bits());
        assert!((Smoother::decay(128) - 0.95).abs() < 1e-15);
        assert_eq!(Smoother::decay(3).to_bits(), 0.0_f64.to_bits());
        assert!(matches!(Smoother::Mean.start(0), Err(Error::Stats(_))));
    }

    #[test]
    fn names_are_read_back() {
        for smoother in Smoother::ALL {
            assert_eq!(Smoother::parse(&smoother.name(32), 32).expect("its own name"), smoother);
        }
        assert_eq!(Smoother::parse("z", 32).expect("a stem"), Smoother::Z);
        let error = Smoother::parse("mean64", 32).expect_err("another window");
        assert_eq!(error.to_string(), "unknown smoothing \"mean64\": expected raw, mean32, ema, z32 or max32");
        assert!(error.hint().is_some());
    }

    #[test]
    fn what_is_undefined_stays_so_and_is_not_remembered() {
        for smoother in Smoother::ALL {
            let mut smoothing = smoother.start(4).expect("a window");
            let first = smoothing.push(Some(1.0));
            assert_eq!((smoothing.push(None), smoothing.push(Some(f32::NAN))), (None, None));
            let mut other = smoother.start(4).expect("a window");
            other.push(Some(1.0));
            assert_eq!(smoothing.push(Some(5.0)), other.push(Some(5.0)), "{smoother:?}");
            smoothing.reset();
            assert_eq!(smoothing.push(Some(1.0)), first);
        }
    }
}
