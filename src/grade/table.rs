//! Table of the verdicts on a file of pairs, by category.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use epikv_grader::Mode;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Graded, Pair};

/// Counts of one category.
#[derive(Debug, Default, Serialize)]
struct Row {
    n_pairs: usize,
    same: usize,
    same_other_form: usize,
    different: usize,
    unsure: usize,
    no_answer: usize,
    /// Pairs whose line says what is expected.
    n_expected: usize,
    right: usize,
    /// Taken as the same, but expected to differ.
    false_same: usize,
    /// Not taken as the same, but expected to be.
    missed_same: usize,
}

impl Row {
    fn count(&mut self, pair: &Pair, graded: &Graded) {
        self.n_pairs += 1;
        let verdict = match graded.name() {
            "same" => &mut self.same,
            "same_other_form" => &mut self.same_other_form,
            "different" => &mut self.different,
            "unsure" => &mut self.unsure,
            _ => &mut self.no_answer,
        };
        *verdict += 1;
        let Some(equal) = pair.equal else { return };
        self.n_expected += 1;
        let figure = match (equal, graded.is_same()) {
            (false, true) => &mut self.false_same,
            (true, false) => &mut self.missed_same,
            _ => &mut self.right,
        };
        *figure += 1;
    }

    fn cells(&self) -> [usize; 9] {
        [
            self.n_pairs,
            self.right,
            self.false_same,
            self.missed_same,
            self.same,
            self.same_other_form,
            self.different,
            self.unsure,
            self.no_answer,
        ]
    }
}

const COLUMNS: [&str; 9] =
    ["pairs", "right", "false same", "missed same", "same", "other form", "different", "unsure", "no answer"];

/// The counts of all pairs.
#[derive(Debug)]
pub(super) struct Table {
    categories: BTreeMap<String, Row>,
    all: Row,
    mode: Mode,
    elapsed: Duration,
}

impl Table {
    pub(super) fn of(pairs: &[Pair], graded: &[Graded], mode: Mode, elapsed: Duration) -> Self {
        let mut table = Self { categories: BTreeMap::new(), all: Row::default(), mode, elapsed };
        for (pair, graded) in pairs.iter().zip(graded) {
            table.categories.entry(pair.category.clone()).or_default().count(pair, graded);
            table.all.count(pair, graded);
        }
        table
    }

    /// Pairs in a second, on the one thread that compares them; `None` where there was nothing to measure.
    fn rate(&self) -> Option<f64> {
        let seconds = self.elapsed.as_secs_f64();
        (self.all.n_pairs > 0 && seconds > 0.0).then(|| self.all.n_pairs as f64 / seconds)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "mode": self.mode.name(),
            "grader": epikv_grader::VERSION,
            "all": self.all,
            "categories": self.categories,
            "wall_s": self.elapsed.as_secs_f64(),
            "pairs_per_s": self.rate(),
        })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = COLUMNS.map(|name| format!("{name:>11}")).concat();
        writeln!(f, "{:<14}{head}", "category")?;
        let named = self.categories.iter().map(|(name, row)| (if name.is_empty() { "-" } else { name.as_str() }, row));
        for (name, row) in named.chain([("all", &self.all)]) {
            let cells = row.cells().map(|n| format!("{n:>11}")).concat();
            writeln!(f, "{name:<14}{cells}")?;
        }
        let rate = self.rate().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
        writeln!(f, "{} mode, grader {}, {rate} pairs/s on one thread", self.mode, epikv_grader::VERSION)
    }
}
