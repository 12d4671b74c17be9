//! Helpers for parsing the parts of a policy.

use std::fmt;
use std::ops::RangeInclusive;

use crate::error::Error;

/// The error of a value that a part cannot have.
pub(super) fn wrong(part: &'static str, expected: &'static str, got: &str) -> Error {
    Error::PartValue { part, expected, got: got.to_owned() }
}

/// The number of `NAME(N)`.
pub(super) fn number(text: &str, name: &str) -> Option<usize> {
    text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?.parse().ok()
}

/// The number of `NAME(N%)`, from 1 to 99.
pub(super) fn percent(text: &str, name: &str) -> Option<u8> {
    let percent = text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix("%)")?;
    percent.parse().ok().filter(|percent| (1..100).contains(percent))
}

/// The argument of a row of a table: `NAME(N)` with `N` in the range, or `NAME` for a row without a number, which has 0.
pub(super) fn argument(text: &str, name: &str, range: Option<&RangeInclusive<usize>>) -> Option<usize> {
    match range {
        None => (text == name).then_some(0),
        Some(range) => number(text, name).filter(|n| range.contains(n)),
    }
}

/// The rows of a table as they are typed, from their names and whether they have a number.
pub(super) fn list(rows: impl Iterator<Item = (&'static str, bool)>) -> String {
    let form = |(name, has_argument): (&str, bool)| if has_argument { format!("{name}(N)") } else { name.to_owned() };
    rows.map(form).collect::<Vec<_>>().join(", ")
}

/// Writes a row with its argument, as [`argument`] reads it.
pub(super) fn write(f: &mut fmt::Formatter<'_>, name: &str, has_argument: bool, argument: usize) -> fmt::Result {
    if has_argument { write!(f, "{name}({argument})") } else { f.write_str(name) }
}
