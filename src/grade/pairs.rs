//! A file of pairs: JSON lines.

use std::path::{Path, PathBuf};

use anyhow::Result;
use epikv_schemas::fs;
use serde::Deserialize;

use crate::report::Refused;

/// A file of pairs is read whole.
const LIMIT: u64 = 1 << 30;

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

/// A line is no pair.
#[derive(Debug, thiserror::Error)]
#[error("{}, line {line}: expected a pair of answers", path.display())]
pub(crate) struct BadPair {
    path: PathBuf,
    line: usize,
    source: serde_json::Error,
}

impl BadPair {
    pub(crate) fn hint(&self) -> String {
        format!("line {} should be an object such as {EXAMPLE}; only pred and gold are needed", self.line)
    }
}

/// Reads all pairs; blank lines are passed over.
pub(super) fn read_pairs(path: &Path) -> Result<Vec<Pair>> {
    let text = fs::read_text(path, LIMIT)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let pairs = lines.map(|(index, text)| {
        let line = index + 1;
        match serde_json::from_str(text) {
            Ok(pair) => Ok(Pair { line, ..pair }),
            Err(source) => Err(BadPair { path: path.to_owned(), line, source }.into()),
        }
    });
    let pairs = pairs.collect::<Result<Vec<Pair>>>()?;
    if pairs.is_empty() {
        let what = format!("{}: expected pairs of answers, got none", path.display());
        return Err(Refused::new(what, format!("a line is an object such as {EXAMPLE}")).into());
    }
    Ok(pairs)
}
