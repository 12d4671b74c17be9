//! The table of all policies. A new one is a row here, and a part of its own where it has something special.

use epikv_model::cache::Scope;

use crate::error::{Error, Result};
use crate::policy::{Policy, PositionMode, Protect, Select, Trigger};
use crate::score::Score;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRow {
    /// Name on the command line and in files.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parts.
    pub policy: Policy,
}

/// What rows share, so that they differ only in what is special to them: equal protection, one kept set, logical positions.
const COMMON: Policy = Policy {
    score: Score::Recency,
    protect: Protect { prompt: true, recency: true },
    select: Select::TopK,
    trigger: Trigger::EachStep,
    scope: Scope::Global,
    position: PositionMode::Logical,
};

/// All policies.
pub static POLICIES: &[PolicyRow] = &[
    PolicyRow {
        name: "full",
        doc: "Keeps everything: what every other row is compared with",
        source: "baseline",
        policy: Policy { trigger: Trigger::Never, ..COMMON },
    },
    PolicyRow {
        name: "window",
        doc: "Keeps the prompt and the newest tokens",
        source: "baseline; StreamingLLM (arXiv 2309.17453) with the prompt in place of its sinks",
        policy: COMMON,
    },
    PolicyRow {
        name: "random",
        doc: "Keeps the prompt, the recent tokens and a uniform sample of those between them",
        source: "baseline",
        policy: Policy { score: Score::Random, ..COMMON },
    },
];

/// The row of a name.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn find(name: &str) -> Result<&'static PolicyRow> {
    POLICIES.iter().find(|row| row.name == name).ok_or_else(|| Error::UnknownPolicy {
        given: name.to_owned(),
        known: POLICIES.iter().map(|row| row.name).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = find("h3o").expect_err("no such row");
        assert_eq!(error.to_string(), "unknown policy \"h3o\": expected one of full, window, random");
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_row_can_be_written_out() {
        assert_eq!(
            find("random").expect("a row").policy.to_string(),
            "score=random;protect=prompt+recency;select=top-k;trigger=each-step;scope=global;position=logical"
        );
        assert!(find("full").expect("a row").policy.to_string().contains("trigger=never"));
    }
}
