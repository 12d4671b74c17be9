//! Files of JSON lines with labels, in the form of [`crate::files::exchange`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use epikv_schemas::{LabelToken, LabelTrace, Trace, fs, read_table};
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::files::exchange::{export, import};
use crate::files::folder::{self, by_trace};

/// What is read of a line; other fields are passed over.
#[derive(Deserialize)]
struct Line {
    token_ids: Vec<i32>,
    importance: Vec<i64>,
}

/// Labels that were taken over.
#[derive(Debug, Default)]
pub struct Imported {
    /// One row a token.
    pub tokens: Vec<LabelToken>,
    /// One row a trace.
    pub traces: Vec<LabelTrace>,
    /// Traces that no line has the tokens of.
    pub n_without: usize,
}

/// Takes over labels of the traces in `trace_file`, which `epikv trace --import` made of the same lines.
///
/// # Errors
/// If a file cannot be read, a line contradicts its trace, or no line is of a trace.
pub fn import_lines(lines: &Path, trace_file: &Path) -> Result<Imported> {
    let (traces, _) = read_table::<Trace>(trace_file)?;
    // Labels of other traces are not kept: a file may hold many more than were asked for.
    let mut importance: BTreeMap<&[i32], Option<Vec<i64>>> =
        traces.iter().map(|trace| (trace.token_ids.as_slice(), None)).collect();
    for line in fs::json_lines::<Line>(lines, "token_ids and importance, lists of integers")? {
        let (_, line) = line?;
        if let Some(of_trace) = importance.get_mut(line.token_ids.as_slice()) {
            *of_trace = Some(line.importance);
        }
    }
    let mut imported = Imported::default();
    for trace in &traces {
        match importance.get(trace.token_ids.as_slice()) {
            Some(Some(importance)) => {
                let (own, row) = import(trace, importance)?;
                imported.tokens.extend(own);
                imported.traces.push(row);
            }
            _ => imported.n_without += 1,
        }
    }
    if imported.traces.is_empty() {
        return Err(Error::NoCommonTrace { lines: lines.to_owned(), traces: trace_file.to_owned() });
    }
    Ok(imported)
}

/// The labels of a folder as JSON lines, one a labelled trace of `trace_file`.
///
/// # Errors
/// If a file cannot be read, or the folder has no labels of any of the traces.
pub fn export_lines(labels: &Path, trace_file: &Path) -> Result<String> {
    let (traces, _) = read_table::<Trace>(trace_file)?;
    let tokens = by_trace(folder::tokens(labels)?, |token| &token.trace_id);
    let windows = if labels.join(folder::WINDOWS).exists() { folder::windows(labels)?.0 } else { Vec::new() };
    let windows = by_trace(windows, |window| &window.trace_id);
    let mut text = String::new();
    for trace in &traces {
        if let Some(own) = tokens.get(&trace.trace_id) {
            let windows = windows.get(&trace.trace_id).map_or(&[][..], Vec::as_slice);
            // Writing into a string does not fail.
            let _ = writeln!(text, "{}", export(trace, own, windows));
        }
    }
    if text.is_empty() {
        return Err(Error::NoLabels { labels: labels.to_owned(), traces: trace_file.to_owned() });
    }
    Ok(text)
}
