//! How a budget is divided among the kept sets.
//!
//! A budget `K` says how many tokens a kept set may hold on average. With `n` kept sets a division `K_1 .. K_n` keeps
//!
//! ```text
//! K_s >= first + recent          sum of K_s <= n K
//! ```
//!
//! | allocate | `K_s` |
//! | --- | --- |
//! | `even` | `K` |
//!
//! A new division is a function and a row of [`ALLOCATORS`].

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::LazyLock;

use epikv_model::cache::Scope;

use crate::error::{Error, Result};
use crate::policy::forms;

/// The values of the part, from the table.
pub(crate) fn values() -> &'static str {
    static VALUES: LazyLock<String> =
        LazyLock::new(|| forms::list(ALLOCATORS.iter().map(|row| (row.name, row.argument.is_some()))));
    &VALUES
}

/// The kept sets of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sets {
    /// Who shares one.
    pub scope: Scope,
    /// Layers of the model.
    pub n_layers: usize,
    /// KV heads of a layer.
    pub n_kv_heads: usize,
}

impl Sets {
    /// How many there are. They are counted layer by layer, and in a layer head by head.
    pub fn count(self) -> usize {
        self.scope.n_sets(self.n_layers, self.n_kv_heads)
    }
}

/// What is divided.
#[derive(Debug, Clone, Copy)]
pub struct Division<'a> {
    /// `K`, tokens.
    pub even: usize,
    /// Tokens that every kept set must hold: the protected ones.
    pub least: usize,
    /// The kept sets.
    pub sets: Sets,
    /// At an eviction: the scores of the tokens that may be evicted, by kept set and in order of positions. `None` before
    /// the first token.
    pub scores: Option<&'a [Vec<f32>]>,
}

/// A row of the table of divisions.
#[derive(Debug)]
pub struct Allocator {
    /// Name on the command line and in files.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What `NAME(N)` may say; `None` for a division without a number.
    pub argument: Option<RangeInclusive<usize>>,
    /// Whether it looks at scores: it is then asked again at each eviction.
    pub by_score: bool,
    /// The tokens that each kept set may hold, from the number of `NAME(N)`, 0 without one.
    pub budgets: fn(usize, &Division<'_>) -> Vec<usize>,
}

/// The row that gives every kept set the same budget.
const EVEN: Allocator = Allocator {
    name: "even",
    doc: "Every kept set may hold equally many tokens",
    source: "what most published policies do",
    argument: None,
    by_score: false,
    budgets: |_, division| vec![division.even; division.sets.count()],
};

/// All divisions.
pub static ALLOCATORS: &[Allocator] = &[EVEN];

/// A division that was chosen.
#[derive(Debug, Clone, Copy)]
pub struct Allocate {
    row: &'static Allocator,
    argument: usize,
}

impl Allocate {
    /// Every kept set has the same budget.
    pub const EVEN: Self = Self { row: &EVEN, argument: 0 };

    /// A row with the number of `NAME(N)`, 0 without one.
    pub const fn new(row: &'static Allocator, argument: usize) -> Self {
        Self { row, argument }
    }

    /// Whether all kept sets have the same budget.
    pub fn is_even(self) -> bool {
        self == Self::EVEN
    }

    /// Whether it is asked again at each eviction.
    pub fn is_by_score(self) -> bool {
        self.row.by_score
    }

    /// The budgets of all kept sets.
    ///
    /// # Errors
    /// If the row gives another number of budgets, one below the protected tokens, or more than `n K` tokens together.
    pub(crate) fn budgets(self, division: &Division<'_>) -> Result<Vec<usize>> {
        let budgets = (self.row.budgets)(self.argument, division);
        let (n_sets, most) = (division.sets.count(), division.even.saturating_mul(division.sets.count()));
        let sum = budgets.iter().fold(0_usize, |sum, &budget| sum.saturating_add(budget));
        if budgets.len() != n_sets || sum > most || budgets.iter().any(|&budget| budget < division.least.max(1)) {
            let allocate = self.to_string();
            return Err(Error::Allocation { allocate, n_sets, least: division.least.max(1), most, got: budgets });
        }
        Ok(budgets)
    }
}

impl PartialEq for Allocate {
    fn eq(&self, other: &Self) -> bool {
        self.row.name == other.row.name && self.argument == other.argument
    }
}

impl Eq for Allocate {}

impl fmt::Display for Allocate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        forms::write(f, self.row.name, self.row.argument.is_some(), self.argument)
    }
}

impl FromStr for Allocate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let of_row =
            |row: &'static Allocator| Some(Self::new(row, forms::argument(text, row.name, row.argument.as_ref())?));
        ALLOCATORS.iter().find_map(of_row).ok_or_else(|| forms::wrong("allocate", values(), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn division(scope: Scope) -> Division<'static> {
        Division { even: 20, least: 6, sets: Sets { scope, n_layers: 4, n_kv_heads: 2 }, scores: None }
    }

    #[test]
    fn every_row_divides_within_the_budget() {
        for row in ALLOCATORS {
            let argument = row.argument.as_ref().map_or(0, |range| *range.start());
            for scope in [Scope::PerLayer, Scope::PerHead] {
                Allocate::new(row, argument).budgets(&division(scope)).expect(row.name);
            }
            assert!(!row.doc.is_empty() && !row.source.is_empty() && values().contains(row.name), "{}", row.name);
        }
        assert_eq!(Allocate::EVEN.budgets(&division(Scope::PerHead)).expect("even"), [20; 8]);
        assert_eq!(Allocate::EVEN.budgets(&division(Scope::Global)).expect("even"), [20]);
        assert_eq!("even".parse::<Allocate>().expect("a row"), Allocate::EVEN);
        assert!("even(3)".parse::<Allocate>().is_err() && "odd".parse::<Allocate>().is_err());
    }

    #[test]
    fn a_row_that_divides_wrongly_is_refused() {
        const fn row(budgets: fn(usize, &Division<'_>) -> Vec<usize>) -> Allocator {
            Allocator { name: "wrong", doc: "", source: "", argument: None, by_score: false, budgets }
        }
        static FEW: Allocator = row(|_, _| vec![20; 3]);
        static LOW: Allocator = row(|_, _| vec![5, 20, 20, 20]);
        static MANY: Allocator = row(|_, _| vec![21, 20, 20, 20]);
        static RIGHT: Allocator = row(|_, _| vec![34, 20, 20, 6]);
        for row in [&FEW, &LOW, &MANY] {
            let error = Allocate::new(row, 0).budgets(&division(Scope::PerLayer));
            assert!(matches!(error, Err(Error::Allocation { n_sets: 4, least: 6, most: 80, .. })), "{error:?}");
        }
        assert!(Allocate::new(&RIGHT, 0).budgets(&division(Scope::PerLayer)).is_ok());
    }
}
