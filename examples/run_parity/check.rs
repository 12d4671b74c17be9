//! Cases and what comes of them.

use std::fmt::{self, Debug, Display};
use std::io::{self, Write};

use anyhow::Result;

/// Differences of a case that are shown.
const SHOWN: usize = 3;

/// What the toolkit has no equal of. As the error of a case it makes the case `not implemented`.
#[derive(Debug)]
pub(crate) struct Lacking(pub(crate) String);

impl Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Lacking {}

/// The case cannot be run, because the toolkit lacks this.
pub(crate) fn lacking<T>(what: impl Into<String>) -> Result<T> {
    Err(Lacking(what.into()).into())
}

/// The comparisons of one case.
#[derive(Debug, Default)]
pub(crate) struct Check {
    n: usize,
    n_wrong: usize,
    shown: Vec<String>,
}

impl Check {
    fn wrong(&mut self, text: impl FnOnce() -> String) {
        self.n_wrong += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(text());
        }
    }

    /// Compares two numbers. One that is not a number is never near.
    pub(crate) fn near(&mut self, what: impl Display, got: f64, want: f64, tolerance: f64) {
        self.n += 1;
        // Infinities have no difference.
        let same = got.total_cmp(&want).is_eq() || (got - want).abs() <= tolerance;
        if !same {
            self.wrong(|| format!("{what}: expected {want} within {tolerance:e}, got {got}"));
        }
    }

    /// Compares numbers one by one.
    pub(crate) fn all_near(&mut self, what: impl Display, got: &[f32], want: &[f64], tolerance: f64) {
        self.equal(format_args!("count of {what}"), &got.len(), &want.len());
        for (at, (got, want)) in got.iter().zip(want).enumerate() {
            self.near(format_args!("{what} [{at}]"), f64::from(*got), *want, tolerance);
        }
    }

    /// Compares two values exactly.
    pub(crate) fn equal<T: PartialEq + Debug + ?Sized>(&mut self, what: impl Display, got: &T, want: &T) {
        self.n += 1;
        if got != want {
            self.wrong(|| format!("{what}: expected {}, got {}", short(want), short(got)));
        }
    }

    /// Demands something that is no comparison of two values.
    pub(crate) fn holds(&mut self, what: impl Display, does: bool) {
        self.n += 1;
        if !does {
            self.wrong(|| format!("expected {what}"));
        }
    }
}

/// A value in few characters: of long lists the ends.
fn short(value: &(impl Debug + ?Sized)) -> String {
    let text = format!("{value:?}");
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= 160 {
        return text;
    }
    let part = |range: &[char]| range.iter().collect::<String>();
    format!("{} .. {}", part(&characters[..100]), part(&characters[characters.len() - 50..]))
}

/// The cases of one kind.
#[derive(Debug)]
struct Tally {
    kind: &'static str,
    passed: usize,
    failed: Vec<String>,
    lacking: Vec<String>,
}

/// What came of all cases.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    tallies: Vec<Tally>,
}

impl Outcome {
    /// The cases that follow are of this kind.
    pub(crate) fn start(&mut self, kind: &'static str) {
        self.tallies.push(Tally { kind, passed: 0, failed: Vec::new(), lacking: Vec::new() });
    }

    /// Runs a case. It passes if all its comparisons hold and there is one; an error of its own is a failure.
    pub(crate) fn case(&mut self, name: impl Display, run: impl FnOnce(&mut Check) -> Result<()>) {
        let mut check = Check::default();
        let ended = run(&mut check);
        let Some(tally) = self.tallies.last_mut() else { return };
        match ended {
            Err(error) => match error.downcast_ref::<Lacking>() {
                Some(lacking) => tally.lacking.push(format!("{name}: {lacking}")),
                None => tally.failed.push(format!("{name}: {error:#}")),
            },
            Ok(()) if check.n == 0 => tally.failed.push(format!("{name}: expected numbers to compare, found none")),
            Ok(()) if check.n_wrong > 0 => {
                let (wrong, n) = (check.n_wrong, check.n);
                tally.failed.push(format!("{name}: {wrong} of {n} comparisons fail; {}", check.shown.join("; ")));
            }
            Ok(()) => tally.passed += 1,
        }
    }

    /// Whether there was no case at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.tallies.iter().all(|tally| tally.passed + tally.failed.len() + tally.lacking.len() == 0)
    }

    /// Cases that failed, of all kinds.
    pub(crate) fn n_failed(&self) -> usize {
        self.tallies.iter().map(|tally| tally.failed.len()).sum()
    }

    /// Cases that passed, of one kind.
    #[cfg(test)]
    pub(crate) fn n_passed(&self, kind: &str) -> usize {
        self.tallies.iter().filter(|tally| tally.kind == kind).map(|tally| tally.passed).sum()
    }

    /// All failures in words.
    #[cfg(test)]
    pub(crate) fn failures(&self) -> Vec<&String> {
        self.tallies.iter().flat_map(|tally| &tally.failed).collect()
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        for Tally { kind, failed, lacking, .. } in &self.tallies {
            for case in lacking {
                writeln!(out, "not implemented {kind} / {case}")?;
            }
            for case in failed {
                writeln!(out, "FAILED {kind} / {case}")?;
            }
        }
        for Tally { kind, passed, failed, lacking } in &self.tallies {
            let (failed, lacking) = (failed.len(), lacking.len());
            writeln!(out, "{kind}: {passed} passed, {failed} failed, {lacking} not implemented")?;
        }
        let passed: usize = self.tallies.iter().map(|tally| tally.passed).sum();
        let lacking: usize = self.tallies.iter().map(|tally| tally.lacking.len()).sum();
        writeln!(out, "{passed} passed, {} failed, {lacking} not implemented", self.n_failed())
    }
}
