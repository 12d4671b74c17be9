//! Roles of columns, and the short functions that records name them with.

/// What a column is for. It decides encoding and statistics, so that a record only says what its values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Short text that repeats and is searched for, such as `trace_id`.
    Key,
    /// One of a few words. The writer refuses any other.
    Word(&'static [&'static str]),
    /// Long or free text.
    Text,
    /// Token index.
    Position,
    /// A number with its unit: tokens, s, bytes, or 1.
    Number(&'static str),
    /// A yes or no.
    Flag,
}

/// Short text that repeats and is searched for.
pub(crate) const fn key() -> Role {
    Role::Key
}

/// One of a few words.
pub(crate) const fn word(words: &'static [&'static str]) -> Role {
    Role::Word(words)
}

/// Long or free text.
pub(crate) const fn text() -> Role {
    Role::Text
}

/// Token index.
pub(crate) const fn position() -> Role {
    Role::Position
}

/// A number and its unit.
pub(crate) const fn number(unit: &'static str) -> Role {
    Role::Number(unit)
}

/// A yes or no.
pub(crate) const fn flag() -> Role {
    Role::Flag
}
