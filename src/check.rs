//! A check, with the figure that decides it.

use serde_json::{Value, json};

/// One line of a self-check.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) good: bool,
    pub(crate) what: &'static str,
    pub(crate) figure: String,
}

impl Check {
    /// A fact that cannot be wrong, for the record.
    pub(crate) fn fact(what: &'static str, figure: impl Into<String>) -> Self {
        Self { good: true, what, figure: figure.into() }
    }

    /// Good if all of at least one hold.
    pub(crate) fn share(what: &'static str, n: usize, of: usize) -> Self {
        Self { good: n == of && of > 0, what, figure: format!("{n} of {of}") }
    }

    /// For a report.
    pub(crate) fn line(&self) -> String {
        format!("- {} {}: {}\n", if self.good { "ok" } else { "FAILED" }, self.what, self.figure)
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "what": self.what, "good": self.good, "figure": self.figure })
    }
}
