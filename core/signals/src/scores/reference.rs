//! A score as policies and command lines name it: a row of the table and its argument.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use epikv_model::taps::ProbePlan;

use super::row::{BuildScore, ScoreRow};
use super::score::{Need, Score, ScoreSpec, Setup};
use super::table::SCORES;
use crate::error::{Error, Result};
use crate::words::kept;

/// Names a score: a row, of [`SCORES`] or of a program's own, and the argument behind its name.
#[derive(Debug, Clone, Copy)]
pub struct ScoreRef {
    row: &'static ScoreRow,
    /// As it is written out; empty for none.
    argument: &'static str,
}

/// Every way in which a score may be typed, separated by commas.
pub fn score_forms() -> &'static str {
    static FORMS: LazyLock<String> =
        LazyLock::new(|| SCORES.iter().flat_map(ScoreRow::forms).collect::<Vec<_>>().join(", "));
    &FORMS
}

impl ScoreRef {
    /// The score of a row, without an argument.
    pub const fn of(row: &'static ScoreRow) -> Self {
        Self { row, argument: "" }
    }

    /// The score of a row of the table, without an argument; `None` if there is no such row.
    pub const fn named(name: &str) -> Option<Self> {
        let mut at = 0;
        while at < SCORES.len() {
            if equal(SCORES[at].spec.name.as_bytes(), name.as_bytes()) {
                return Some(Self::of(&SCORES[at]));
            }
            at += 1;
        }
        None
    }

    /// The same score with an argument, as the row writes it out.
    #[must_use]
    pub const fn with(self, argument: &'static str) -> Self {
        Self { argument, ..self }
    }

    /// What the tables say of it.
    pub fn spec(&self) -> &'static ScoreSpec {
        self.row.spec
    }

    /// The argument as it is written out; empty for none.
    pub fn argument(&self) -> &'static str {
        self.argument
    }

    /// The score, with nothing observed yet.
    ///
    /// # Errors
    /// If the model is too shallow for it, or the row needs an argument.
    pub fn start(&self, setup: &Setup) -> Result<Box<dyn Score>> {
        match self.row.build {
            BuildScore::Plain(build) => build(setup),
            BuildScore::Argument(parse) => {
                let form = parse(self.argument).ok_or_else(|| Error::ScoreForm { given: self.to_string() })?;
                (form.build)(setup)
            }
        }
    }

    /// What the forward pass must record for it.
    ///
    /// # Errors
    /// As [`ScoreRef::start`].
    pub fn plan(&self, n_layers: usize) -> Result<ProbePlan> {
        Ok(self.start(&Setup::new(n_layers))?.plan())
    }

    /// The two layers that it compares, where it does.
    ///
    /// # Errors
    /// As [`ScoreRef::start`].
    pub fn layers(&self, n_layers: usize) -> Result<Option<[usize; 2]>> {
        Ok(self.start(&Setup::new(n_layers))?.layers())
    }

    /// Whether it is a function of attention weights, in a model of so many layers.
    pub fn needs_attention(&self, n_layers: usize) -> bool {
        self.plan(n_layers).is_ok_and(|plan| plan.needs_attention())
    }

    /// Whether it is computed from something.
    pub fn needs(&self, need: Need) -> bool {
        self.spec().needs.contains(&need)
    }

    /// Whether it is computed from what is held, and not given once when a token is fed.
    pub fn is_live(&self) -> bool {
        !self.spec().frozen
    }

    /// Whether a token can score otherwise in another kept set.
    pub fn is_by_set(&self) -> bool {
        self.is_live() || self.spec().by_set
    }

    /// Whether it is a weight that tokens can be drawn by: computed from what is held and never below zero.
    pub fn is_weight(&self) -> bool {
        self.spec().weight
    }
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Two scores of one name count as the same.
impl PartialEq for ScoreRef {
    fn eq(&self, other: &Self) -> bool {
        (self.spec().name, self.argument) == (other.spec().name, other.argument)
    }
}

impl Eq for ScoreRef {}

impl fmt::Display for ScoreRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec().name)?;
        if self.argument.is_empty() { Ok(()) } else { write!(f, "({})", self.argument) }
    }
}

impl FromStr for ScoreRef {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::ScoreForm { given: text.to_owned() };
        let (name, argument) = match text.split_once('(') {
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(wrong)?)),
            None => (text, None),
        };
        let row = SCORES.iter().find(|row| row.spec.name == name).ok_or_else(wrong)?;
        match (row.build, argument) {
            (BuildScore::Plain(_), None) => Ok(Self::of(row)),
            (BuildScore::Plain(_), Some(_)) => Err(wrong()),
            (BuildScore::Argument(parse), argument) => {
                // Brackets with nothing in them are no argument.
                let argument = argument.map_or(Some(""), |argument| Some(argument).filter(|text| !text.is_empty()));
                let form = argument.and_then(parse).ok_or_else(wrong)?;
                Ok(Self { row, argument: kept(&form.argument) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for text in [
            "recency",
            "random",
            "kv-key",
            "k-norm",
            "key-diff",
            "labels",
            "h2o",
            "h2o(decode)",
            "tova",
            "raas",
            "snapkv",
            "snapkv(window16+mean5)",
            "snapkv-decode",
            "r-kv",
            "r-kv(lambda0.07)",
            "vase",
            "vase(window16+largest1)",
            "lag-kv",
            "lag-kv(32)",
            "epikv-lag",
            "epikv-lag-key(16)",
            "epikv",
            "epikv-raw",
            "epikv(1+3)",
            "epikv-raw(2+0+window16)",
            "epikv(window8)",
            "layer(3)",
            "layer(-3)",
        ] {
            assert_eq!(text.parse::<ScoreRef>().expect("a score").to_string(), text);
        }
        for (typed, name) in
            [("lag-kv(128)", "lag-kv"), ("snapkv(window32)", "snapkv"), ("vase(mean1)", "vase(largest1)")]
        {
            assert_eq!(typed.parse::<ScoreRef>().expect("a score").to_string(), name, "one score has one name");
        }
        for text in [
            "",
            "h2o(",
            "h2o()",
            "h2o(all)",
            "epikv(1)",
            "epikv(1+2+3)",
            "epikv(a+b)",
            "epikv(window18446744073709551615)",
            "recency(3)",
            "epikv(1+2",
            "z",
            "layer",
            "layer(--1)",
            "raas(1)",
            "snapkv(window0)",
            "snapkv(mean4)",
            "snapkv(lambda0.5)",
            "r-kv(lambda2)",
            "r-kv(16)",
            "lag-kv(0)",
        ] {
            assert!(matches!(text.parse::<ScoreRef>(), Err(Error::ScoreForm { .. })), "{text}");
        }
    }

    #[test]
    fn a_row_that_needs_an_argument_cannot_start_without() {
        const LAYER: Option<ScoreRef> = ScoreRef::named("layer");
        let layer = LAYER.expect("a row");
        assert!(matches!(layer.start(&Setup::new(4)), Err(Error::ScoreForm { .. })));
        assert!(ScoreRef::named("laye").is_none() && ScoreRef::named("layers").is_none());
    }

    #[test]
    fn layers_and_attention_are_declared() {
        let of = |text: &str| text.parse::<ScoreRef>().expect("a score");
        assert_eq!(of("epikv").layers(32).expect("deep enough"), Some([10, 21]));
        assert!(of("epikv").plan(1).is_err(), "both map to the only layer");
        assert!(of("epikv(1+9)").plan(4).is_err() && of("layer(4)").plan(4).is_err());
        assert!(score_forms().contains("epikv(LAYER+LAYER)") && score_forms().contains(", labels"));
    }
}
