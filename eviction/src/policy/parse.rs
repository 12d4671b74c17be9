//! A policy as it is typed: `NAME`, or `NAME;part=value;part=value` with parts of the row replaced.
//!
//! ```text
//! h2o;protect=sinks(4)+recency(24);trigger=every(64)
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use epikv_model::cache::Scope;
use epikv_signals::score_forms;

use crate::error::{Error, Result};
use crate::policy::forms;
use crate::policy::registry::{POLICIES, PolicyRow, find};
use crate::policy::{Policy, PositionMode, allocate, protect, read, select, trigger};

/// A policy under the name that tables and files give it.
#[derive(Debug, Clone)]
pub struct NamedPolicy {
    /// The row's name, and the parts that differ from the row in a fixed order.
    pub name: String,
    /// The row that it started from.
    pub row: &'static PolicyRow,
    /// Its parts.
    pub policy: Policy,
}

/// The parts of a policy and the values that each may have.
pub static PARTS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    vec![
        ("score", score_forms()),
        ("protect", protect::FORMS),
        ("allocate", allocate::values()),
        ("select", select::FORMS),
        ("trigger", trigger::FORMS),
        ("read", read::values()),
        ("scope", "global, per-layer, per-head"),
        ("position", "logical, rewound, compacted"),
        ("cache", "f32, bf16, f16, jitter(N) units in the last place"),
        ("seed", "a number, for randomised policies"),
    ]
});

/// The names alone.
const PART_NAMES: &[&str] =
    &["score", "protect", "allocate", "select", "trigger", "read", "scope", "position", "cache", "seed"];

impl From<&'static PolicyRow> for NamedPolicy {
    fn from(row: &'static PolicyRow) -> Self {
        Self { name: row.name.to_owned(), row, policy: row.policy }
    }
}

impl fmt::Display for NamedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for NamedPolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split(';').map(str::trim);
        let row = find(parts.next().unwrap_or_default())?;
        let mut policy = row.policy;
        let mut given = Vec::new();
        for part in parts {
            let form = || Error::PartForm { policy: text.to_owned(), given: part.to_owned() };
            let (name, value) = part.split_once('=').ok_or_else(form)?;
            let (name, value) = (name.trim(), value.trim());
            match name {
                "score" => policy.score = value.parse().map_err(|_| wrong("score", value))?,
                "protect" => policy.protect = value.parse()?,
                "allocate" => policy.allocate = value.parse()?,
                "select" => policy.select = value.parse()?,
                "trigger" => policy.trigger = value.parse()?,
                "read" => policy.read = value.parse()?,
                "scope" => policy.scope = scope(value)?,
                "position" => policy.position = value.parse()?,
                "cache" => policy.cache = value.parse().map_err(|_| wrong("cache", value))?,
                "seed" => policy.seed = value.parse().map_err(|_| wrong("seed", value))?,
                _ => {
                    return Err(Error::UnknownPart {
                        policy: text.to_owned(),
                        given: name.to_owned(),
                        known: PART_NAMES,
                    });
                }
            }
            if given.contains(&name) {
                return Err(form());
            }
            given.push(name);
        }
        policy.check()?;
        Ok(Self::of(policy, row))
    }
}

impl NamedPolicy {
    /// The name of a composition: a row, and the parts that differ from it, so that one policy has one name.
    ///
    /// The row is that of the same score with the fewest other parts; among equals `typed`, then the first.
    pub fn of(policy: Policy, typed: &'static PolicyRow) -> Self {
        let own = policy.parts();
        let changed = |row: &PolicyRow| -> Vec<String> {
            let pairs = own.iter().zip(row.policy.parts()).filter(|(own, base)| *own != base);
            pairs.map(|((name, value), _)| format!("{name}={value}")).collect()
        };
        let all = std::iter::once(typed).chain(POLICIES);
        let rows = all.min_by_key(|row| (row.policy.score != policy.score, changed(row).len()));
        let row = rows.unwrap_or(typed);
        let name = std::iter::once(row.name.to_owned()).chain(changed(row)).collect::<Vec<_>>().join(";");
        Self { name, row, policy }
    }

    /// The policy with a score in the place of its own and everything else held: one of a controlled experiment.
    ///
    /// `held` is `part=value;part=value` over what all policies share.
    ///
    /// # Errors
    /// As `from_str`.
    pub fn swapped(score: &str, held: &str) -> Result<Self> {
        let held = if held.is_empty() { String::new() } else { format!(";{held}") };
        format!("window;score={}{held}", score.trim()).parse()
    }

    /// Checks that a model of so many layers is deep enough for it.
    ///
    /// # Errors
    /// With its name, if it is not.
    pub(crate) fn fits(&self, n_layers: usize) -> Result<()> {
        self.policy.score.plan(n_layers).map(drop).map_err(|error| Error::from(error).of("policy", &self.name))
    }

    /// The same policy with other draws.
    #[must_use]
    pub fn with_seed(&self, seed: u32) -> Self {
        Self::of(Policy { seed, ..self.policy }, self.row)
    }
}

/// The error of a value that a part cannot have.
fn wrong(part: &'static str, got: &str) -> Error {
    let expected = PARTS.iter().find(|(name, _)| *name == part).map_or("", |(_, forms)| forms);
    forms::wrong(part, expected, got)
}

fn scope(text: &str) -> Result<Scope> {
    match text {
        "global" => Ok(Scope::Global),
        "per-layer" => Ok(Scope::PerLayer),
        "per-head" => Ok(Scope::PerHead),
        _ => Err(wrong("scope", text)),
    }
}

impl FromStr for PositionMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "logical" => Ok(Self::Logical),
            "rewound" => Ok(Self::Rewound),
            "compacted" => Ok(Self::Compacted),
            _ => Err(wrong("position", text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use epikv_words::Hint;

    use super::*;
    use crate::policy::{Protect, Recency, Trigger};

    fn parse(text: &str) -> Result<NamedPolicy> {
        text.parse()
    }

    #[test]
    fn a_name_is_its_row_and_parts_replace_those_of_the_row() {
        for row in POLICIES {
            let named = parse(row.name).expect("a row");
            assert_eq!((named.name.as_str(), named.policy), (row.name, row.policy));
        }
        let named = parse("h2o; trigger=every(64);protect=sinks(4)+recency(24)").expect("parts");
        assert_eq!(named.name, "h2o;protect=sinks(4)+recency(24);trigger=every(64)");
        assert_eq!(named.policy.trigger, Trigger::Every(64));
        assert_eq!(named.policy.protect, Protect { prompt: false, sinks: 4, recency: Recency::Tokens(24) });
        assert_eq!(parse(&named.name).expect("its own name").policy, named.policy);
        assert_eq!(parse("h2o;scope=per-head;trigger=every(1)").expect("nothing new").name, "h2o");
    }

    #[test]
    fn one_policy_has_one_name() {
        for (typed, name) in [
            ("window;score=epikv", "epikv"),
            ("window;score=epikv;trigger=buffer(4)", "epikv;trigger=buffer(4)"),
            ("epikv;score=recency", "window"),
            ("window;trigger=never", "full"),
            ("full;cache=jitter(16);seed=3", "full-jitter;seed=3"),
            ("window;score=h2o", "h2o;scope=global"),
            ("random;seed=0", "random"),
            ("tova;select=draw + values(25%)", "tova;select=draw+values(25%)"),
            ("h2o;select=top-k+values(0%)", "h2o"),
        ] {
            assert_eq!(parse(typed).expect(typed).name, name, "{typed}");
            assert_eq!(parse(name).expect(name).policy, parse(typed).expect(typed).policy, "{typed}");
        }
        assert_eq!(NamedPolicy::swapped("kv-key", "trigger=every(8)").expect("parts").name, "kv-key;trigger=every(8)");
        assert_eq!(parse("random").expect("a row").with_seed(4).name, "random;seed=4");
    }

    #[test]
    fn what_is_written_out_can_be_typed() {
        for row in POLICIES {
            let all = format!("window;{}", row.policy);
            assert_eq!(parse(&all).expect("all parts").policy, row.policy);
        }
        assert_eq!(PARTS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), PART_NAMES);
    }

    #[test]
    fn near_misses_are_told() {
        for (text, meant) in [
            ("epikv-rwa", "epikv-raw"),
            ("H2O", "h2o"),
            ("h2o;scpoe=global", "scope"),
            ("h2o;score=epikw", "epikv"),
            ("h2o;trigger=evry(3)", "every"),
            ("h2o;position=logcal", "logical"),
        ] {
            let hint = parse(text).expect_err(text).hint().expect("a hint");
            assert!(hint.starts_with(&format!("did you mean {meant:?}?")), "{text}: {hint}");
        }
        // Nothing is near, or the name is right and its number is not.
        for text in ["h2o;score=zzzz", "h2o;trigger=every(0)", "h2o;protect=sinks(-1)", "h2o;score=epikv(window0)"] {
            let hint = parse(text).expect_err(text).hint().expect("a hint");
            assert!(!hint.contains("did you mean"), "{text}: {hint}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = parse("h2o;budget=3").expect_err("no such part");
        let text = error.to_string();
        assert!(text.contains("unknown part \"budget\"") && text.contains("score, protect"), "{text}");
        for text in ["h2o;trigger", "h2o;scope=global;scope=global", "h2o;"] {
            assert!(matches!(parse(text), Err(Error::PartForm { .. })), "{text}");
        }
        for text in [
            "h2o;trigger=every(0)",
            "h2o;trigger=every(x)",
            "h2o;scope=all",
            "h2o;protect=",
            "h2o;protect=prompt+everything",
            "h2o;protect=recency(99999999999999)",
            "h2o;select=best",
            "h2o;select=top-k+values(101%)",
            "h2o;select=draw+values(5",
            "h2o;position=absolute",
            "h2o;score=h3o",
            "h2o;score=epikv(window18446744073709551615)",
            "h2o;cache=f64",
            "h2o;cache=jitter(0)",
            "h2o;seed=-1",
        ] {
            let error = parse(text).expect_err(text);
            assert!(matches!(error, Error::PartValue { .. }) && error.hint().is_some(), "{text}");
        }
        assert!(matches!(parse(";scope=global"), Err(Error::UnknownPolicy { .. })));
        for text in ["epikv;select=draw", "k-norm;select=draw", "r-kv;select=draw"] {
            let error = parse(text).expect_err(text);
            assert!(matches!(error, Error::SelectOf { .. }) && error.hint().is_some(), "{text}");
        }
    }
}
