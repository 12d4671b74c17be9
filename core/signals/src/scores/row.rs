//! A row of the table of scores: what is said of one, and how it is made.

use super::score::{Score, ScoreSpec, Setup};
use crate::error::Result;

/// A row of the table: what is said of a score, and how it is made.
#[derive(Debug, Clone, Copy)]
pub struct ScoreRow {
    /// Name, documentation, source and needs.
    pub spec: &'static ScoreSpec,
    /// How it is made. Rows hold constructors, never shared instances.
    pub build: BuildScore,
}

/// How a score is made.
#[derive(Debug, Clone, Copy)]
pub enum BuildScore {
    /// It takes no argument.
    Plain(fn(&Setup) -> Result<Box<dyn Score>>),
    /// Its argument is what stands in brackets behind its name, empty without brackets; `None` for a wrong one.
    Argument(fn(&str) -> Option<Form>),
}

/// A score with its argument, read.
pub struct Form {
    /// The argument as it is written out: empty where it changes nothing, so that one score has one name.
    pub(super) argument: String,
    pub(super) build: Build,
}

/// Makes the score that an argument says.
type Build = Box<dyn Fn(&Setup) -> Result<Box<dyn Score>>>;

impl Form {
    /// The argument as it is written out, and the score that it gives.
    pub fn new(argument: impl std::fmt::Display, build: impl Fn(&Setup) -> Result<Box<dyn Score>> + 'static) -> Self {
        Self { argument: argument.to_string(), build: Box::new(build) }
    }
}

impl ScoreRow {
    /// The row of a score without an argument.
    pub const fn plain(spec: &'static ScoreSpec, build: fn(&Setup) -> Result<Box<dyn Score>>) -> Self {
        Self { spec, build: BuildScore::Plain(build) }
    }

    /// The row of a score with an argument.
    pub const fn with_argument(spec: &'static ScoreSpec, parse: fn(&str) -> Option<Form>) -> Self {
        Self { spec, build: BuildScore::Argument(parse) }
    }

    /// How it may be typed: by its name, if it needs no argument, and with each form of one.
    pub fn forms(&self) -> Vec<String> {
        let name = self.spec.name;
        let alone = match self.build {
            BuildScore::Plain(_) => true,
            BuildScore::Argument(parse) => parse("").is_some(),
        };
        let alone = alone.then(|| name.to_owned());
        alone.into_iter().chain(self.spec.forms.iter().map(|form| format!("{name}({form})"))).collect()
    }
}
