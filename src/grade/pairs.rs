//! A file of pairs: JSON lines.

use std::path::Path;

use anyhow::Result;
use epikv_schemas::fs;
use serde::Deserialize;

use crate::report::Refused;

/// A line as it should be.
const EXAMPLE: &str = r#"{"pred": "1/2", "gold": "0.5", "equal": true}"#;

/// What `pred` is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// An answer.
    #[default]
    Pair,
    /// A text that holds one.
    Extract,
}

/// One line.
#[derive(Debug, Deserialize)]
pub(super) struct Pair {
    pub(super) pred: String,
    pub(super) gold: String,
    /// What is expected.
    pub(super) equal: Option<bool>,
    #[serde(default)]
    pub(super) category: String,
    #[serde(default)]
    pub(super) kind: Kind,
    /// Where it stands, from 1.
    #[serde(skip)]
    pub(super) line: usize,
}

/// Reads all pairs; blank lines are passed over.
pub(super) fn read_pairs(path: &Path) -> Result<Vec<Pair>> {
    let pair = |read| match read {
        Ok((line, pair)) => Ok(Pair { line, ..pair }),
        Err(error @ epikv_schemas::Error::BadLine { .. }) => {
            let hint = format!("each line should be an object such as {EXAMPLE}; only pred and gold are needed");
            Err(Refused::advised(error, hint).into())
        }
        Err(error) => Err(error.into()),
    };
    let pairs = fs::json_lines(path, "a pair of answers")?.map(pair).collect::<Result<Vec<Pair>>>()?;
    if pairs.is_empty() {
        let what = format!("{}: expected pairs of answers, got none", path.display());
        return Err(Refused::new(what, format!("a line is an object such as {EXAMPLE}")).into());
    }
    Ok(pairs)
}
