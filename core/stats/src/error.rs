//! Errors of settings. Data cause no error: an undefined statistic is `None`.

/// A setting outside its range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A confidence level that is not strictly between 0 and 1.
    #[error("confidence level out of range, expected: inside (0, 1), got: {got}")]
    Confidence {
        /// The level that was asked for.
        got: f64,
    },
    /// A rolling window without room for one value.
    #[error("rolling window too short, expected: at least 1 value, got: {got}")]
    Window {
        /// The window that was asked for.
        got: usize,
    },
    /// More values required than the rolling window can hold.
    #[error("min_periods exceeds the rolling window, expected: at most {window} values, got: {got}")]
    MinPeriods {
        /// The count that was asked for.
        got: usize,
        /// The window length.
        window: usize,
    },
    /// A term added to a deviation that is negative or not finite.
    #[error("eps of the z-score out of range, expected: finite and at least 0, got: {got}")]
    Eps {
        /// The term that was asked for.
        got: f64,
    },
    /// A decay outside `[0, 1)`.
    #[error("decay out of range, expected: inside [0, 1), got: {got}")]
    Decay {
        /// The decay that was asked for.
        got: f64,
    },
}

/// The result of checking a setting.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_then_expected_then_got() {
        let cases = [
            (Error::Confidence { got: 1.0 }, "confidence level out of range, expected: inside (0, 1), got: 1"),
            (
                Error::MinPeriods { got: 5, window: 4 },
                "min_periods exceeds the rolling window, expected: at most 4 values, got: 5",
            ),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
