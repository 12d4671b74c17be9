//! The read plan of a policy: which held tokens a step reads.
//!
//! Nothing is freed by it: what one step leaves unread, the next may read. A policy that never evicts and reads a part is
//! one of retrieval; its budget says how many tokens of a kept set it may read.
//!
//! | read | the next step reads |
//! | --- | --- |
//! | `all` | everything that is held |
//!
//! A new one is a function and a row of [`READERS`].

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::LazyLock;

use epikv_model::cache::RowCache;
use epikv_model::plan::ReadPlan;

use crate::error::{Error, Result};
use crate::policy::forms;
use crate::policy::limits::Limits;

/// The values of the part, from the table.
pub(crate) fn values() -> &'static str {
    static VALUES: LazyLock<String> =
        LazyLock::new(|| forms::list(READERS.iter().map(|row| (row.name, row.argument.is_some()))));
    &VALUES
}

/// What is chosen from, before a step that feeds a generated token.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    /// What is held.
    pub cache: &'a RowCache,
    /// The policy's scores of it, by kept set and in order of positions.
    pub scores: &'a [Vec<f32>],
    /// The budget, and what is protected.
    pub limits: &'a Limits,
}

/// A row of the table of readers.
#[derive(Debug)]
pub struct Reader {
    /// Name on the command line and in files.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What `NAME(N)` may say; `None` for a reader without a number.
    pub argument: Option<RangeInclusive<usize>>,
    /// What the next step reads, from the number of `NAME(N)`, 0 without one.
    pub plan: fn(usize, &Held<'_>) -> ReadPlan,
}

/// The row that reads everything.
const ALL: Reader = Reader {
    name: "all",
    doc: "Every step reads everything that is held",
    source: "what policies of eviction do",
    argument: None,
    plan: |_, _| ReadPlan::All,
};

/// All readers.
pub static READERS: &[Reader] = &[ALL];

/// A reader that was chosen.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    row: &'static Reader,
    argument: usize,
}

impl Read {
    /// Every step reads everything.
    pub const ALL: Self = Self { row: &ALL, argument: 0 };

    /// A row with the number of `NAME(N)`, 0 without one.
    pub const fn new(row: &'static Reader, argument: usize) -> Self {
        Self { row, argument }
    }

    /// Whether every step reads everything.
    pub fn is_all(self) -> bool {
        self == Self::ALL
    }

    /// What the next step reads.
    pub(crate) fn plan(self, held: &Held<'_>) -> ReadPlan {
        (self.row.plan)(self.argument, held)
    }
}

impl PartialEq for Read {
    fn eq(&self, other: &Self) -> bool {
        self.row.name == other.row.name && self.argument == other.argument
    }
}

impl Eq for Read {}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        forms::write(f, self.row.name, self.row.argument.is_some(), self.argument)
    }
}

impl FromStr for Read {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let of_row =
            |row: &'static Reader| Some(Self::new(row, forms::argument(text, row.name, row.argument.as_ref())?));
        READERS.iter().find_map(of_row).ok_or_else(|| forms::wrong("read", values(), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_as_they_are_read() {
        for row in READERS {
            let argument = row.argument.as_ref().map_or(0, |range| *range.start());
            let read = Read::new(row, argument);
            assert_eq!(read.to_string().parse::<Read>().expect(row.name), read);
            assert!(!row.doc.is_empty() && !row.source.is_empty() && values().contains(row.name), "{}", row.name);
        }
        assert!("all(3)".parse::<Read>().is_err() && "some".parse::<Read>().is_err());
    }
}
