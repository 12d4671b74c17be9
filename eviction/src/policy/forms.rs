//! What the parts of a policy share when they are read.

use crate::error::Error;

/// The error of a value that a part cannot have.
pub(super) fn wrong(part: &'static str, expected: &'static str, got: &str) -> Error {
    Error::PartValue { part, expected, got: got.to_owned() }
}

/// The number of `NAME(N)`.
pub(super) fn number(text: &str, name: &str) -> Option<usize> {
    text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?.parse().ok()
}
