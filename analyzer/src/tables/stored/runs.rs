//! The rows of each trace in a file of signals.

use std::collections::BTreeMap;
use std::ops::Range;

use epikv_schemas::{ColumnFile, Trace};

use crate::error::{Error, Result};
use crate::tables::rows::signal_of_age;

/// Rows of a trace that follow one another, of one signal where rows are told apart by their age.
pub(super) struct Run {
    pub(super) trace_id: String,
    pub(super) signal: Option<&'static str>,
    pub(super) rows: Range<usize>,
}

/// The rows of each known trace in a file, whose tokens must be those of the trace. Rows with an age name no tokens: they must
/// be as many.
pub(super) fn runs(file: &ColumnFile, known: &BTreeMap<&str, &Trace>, has_ages: bool) -> Result<Vec<Run>> {
    let mut runs: Vec<(Run, Option<i32>)> = Vec::new();
    let mut wrong = None;
    let mut trace: Option<&Trace> = None;
    let mut each = |trace_id: &str, age: Option<i32>, pos: i32, token_id: Option<i32>| {
        let row = runs.last().map_or(0, |(run, _)| run.rows.end);
        match runs.last_mut() {
            Some((run, own)) if run.trace_id == trace_id && *own == age => run.rows.end += 1,
            _ => {
                trace = known.get(trace_id).copied();
                let signal = age.and_then(signal_of_age);
                runs.push((Run { trace_id: trace_id.to_owned(), signal, rows: row..row + 1 }, age));
            }
        }
        let (Some(trace), Some((run, _))) = (trace, runs.last()) else { return };
        let at = run.rows.len() - 1;
        let other = |expected: String, got: String| Error::OtherTokens {
            path: file.path().to_owned(),
            trace_id: trace_id.to_owned(),
            pos: at,
            expected,
            got,
        };
        if let (Some(age), None) = (age, run.signal) {
            wrong.get_or_insert_with(|| other("an age in tokens".to_owned(), age.to_string()));
        }
        let expected = trace.token_ids.get(at);
        if usize::try_from(pos) != Ok(at) || expected.is_none() || token_id.is_some_and(|id| expected != Some(&id)) {
            wrong.get_or_insert_with(|| {
                let of = |id: Option<i32>| id.map_or("a row".to_owned(), |id| format!("token {id}"));
                let expected = expected.map_or("no token".to_owned(), |id| of(token_id.and(Some(*id))));
                other(expected, format!("{} at position {pos}", of(token_id)))
            });
        }
    };
    if has_ages {
        file.keys(["age", "pos"], |trace_id, age, pos| each(trace_id, Some(age), pos, None))?;
    } else {
        file.tokens(|trace_id, pos, token_id| each(trace_id, None, pos, Some(token_id)))?;
    }
    if let Some(error) = wrong {
        return Err(error);
    }
    let mut runs: Vec<Run> = runs.into_iter().map(|(run, _)| run).collect();
    runs.retain(|run| known.contains_key(run.trace_id.as_str()));
    let is_cut = |run: &&Run| run.rows.len() != known[run.trace_id.as_str()].token_ids.len();
    match runs.iter().find(is_cut) {
        Some(run) => Err(Error::OtherTokens {
            path: file.path().to_owned(),
            trace_id: run.trace_id.clone(),
            pos: run.rows.len(),
            expected: format!("{} tokens", known[run.trace_id.as_str()].token_ids.len()),
            got: run.rows.len().to_string(),
        }),
        None => Ok(runs),
    }
}
