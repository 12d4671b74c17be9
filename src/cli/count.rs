//! Counts as they are typed, within bounds that no run comes near: what is larger is a slip, and would end in a sum that
//! overflows or in memory that nobody has.

use std::ops::RangeInclusive;

/// Tokens of anything: beyond any context.
const MOST_TOKENS: usize = 1 << 24;

/// Problems, samples, pairs, traces.
const MOST_ITEMS: usize = 1_000_000;

/// Tokens, at least one.
pub(crate) fn tokens(text: &str) -> Result<usize, String> {
    within(text, 1..=MOST_TOKENS)
}

/// Tokens, or none.
pub(crate) fn tokens_or_none(text: &str) -> Result<usize, String> {
    within(text, 0..=MOST_TOKENS)
}

/// Items, at least one.
pub(crate) fn items(text: &str) -> Result<usize, String> {
    within(text, 1..=MOST_ITEMS)
}

/// Items, or none.
pub(crate) fn items_or_none(text: &str) -> Result<usize, String> {
    within(text, 0..=MOST_ITEMS)
}

/// Samples of a problem, at least one.
pub(crate) fn samples(text: &str) -> Result<u32, String> {
    items(text).map(|n| n as u32)
}

/// A whole number within a range.
pub(crate) fn within(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| range.contains(n));
    number.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
}
