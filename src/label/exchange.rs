//! `epikv label --import`, `--export` and `--compare-sentences`: labels from and for other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use epikv_labeler::exchange::{export, import};
use epikv_labeler::sentences::{Placed, SentenceScores, compare_sentences};
use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Provenance, Trace, fs, read_table};
use serde::Deserialize;
use serde_json::json;

use super::FILES;
use crate::cli::ModelArgs;
use crate::output::{Done, RunFolder, input};
use crate::setup;

/// A line of an import; others are passed over.
#[derive(Deserialize)]
struct Labelled {
    token_ids: Vec<i32>,
    importance: Vec<i64>,
}

/// Imports labels of the traces in `trace_file`, which `epikv trace --import` made from the same lines.
pub(super) fn run_import(lines: &Path, trace_file: &Path, out: &Path, args: &ModelArgs) -> Result<Done> {
    let mut folder = RunFolder::open(out, &FILES[1..3], args.fresh)?;
    let (traces, _) = read_table::<Trace>(trace_file)?;
    // Labels of other traces are not kept: a file may hold many more than were asked for.
    let mut importance: BTreeMap<&[i32], Option<Vec<i64>>> =
        traces.iter().map(|trace| (trace.token_ids.as_slice(), None)).collect();
    for line in fs::json_lines::<Labelled>(lines, "token_ids and importance, lists of integers")? {
        let (_, line) = line?;
        if let Some(of_trace) = importance.get_mut(line.token_ids.as_slice()) {
            *of_trace = Some(line.importance);
        }
    }
    let (mut tokens, mut labelled, mut n_without) = (Vec::new(), Vec::new(), 0);
    for trace in &traces {
        match importance.get(trace.token_ids.as_slice()) {
            Some(Some(importance)) => {
                let (own, row) = import(trace, importance)?;
                tokens.extend(own);
                labelled.push(row);
            }
            _ => n_without += 1,
        }
    }
    if labelled.is_empty() {
        bail!("{}: no line has the tokens of a trace in {}", lines.display(), trace_file.display());
    }
    let mut provenance = Provenance::new();
    provenance.set("tool", setup::tool());
    provenance.set("run", json!({ "imported": true }));
    provenance.set("inputs", json!([input(trace_file)?, input(lines)?]));
    folder.note("command", json!("label"));
    folder.write(FILES[1], &tokens, &provenance)?;
    folder.write(FILES[2], &labelled, &provenance)?;
    folder.finish()?;
    let n = labelled.len();
    writeln!(std::io::stderr(), "{n} traces with labels, {n_without} without -> {}", out.display())?;
    Ok(if n_without == 0 { Done::All } else { Done::SomeFailed })
}

/// Writes the labels of a folder as JSON lines.
pub(super) fn run_export(labels: &Path, trace_file: &Path, out: &Path, args: &ModelArgs) -> Result<Done> {
    if out.exists() && !args.fresh {
        return Err(crate::output::Exists::at(out).into());
    }
    let (traces, _) = read_table::<Trace>(trace_file)?;
    let tokens = by_trace(read_table::<LabelToken>(&labels.join(FILES[1]))?.0, |token| &token.trace_id);
    let windows_file = labels.join(FILES[0]);
    let windows = if windows_file.exists() { read_table::<LabelWindow>(&windows_file)?.0 } else { Vec::new() };
    let windows = by_trace(windows, |window| &window.trace_id);
    let mut text = String::new();
    for trace in &traces {
        if let Some(own) = tokens.get(&trace.trace_id) {
            let windows = windows.get(&trace.trace_id).map_or(&[][..], Vec::as_slice);
            writeln!(text, "{}", export(trace, own, windows))?;
        }
    }
    if text.is_empty() {
        bail!("{}: expected labels of a trace in {}, got none", labels.display(), trace_file.display());
    }
    fs::write_atomic(out, text.as_bytes())?;
    writeln!(std::io::stderr(), "{} traces with labels -> {}", text.lines().count(), out.display())?;
    Ok(Done::All)
}

/// Compares the labels of a folder with scores of sentences.
pub(super) fn run_sentences(scores: &Path, labels: &Path, trace_file: &Path, args: &ModelArgs) -> Result<Done> {
    let scored = fs::json_lines::<SentenceScores>(scores, "id, columns and chunks")?;
    let scored = scored.map(|line| Ok(line?.1)).collect::<Result<Vec<_>>>()?;
    if scored.is_empty() {
        bail!("{}: expected lines of sentence scores, got none", scores.display());
    }
    let (traces, made_by) = read_table::<Trace>(trace_file)?;
    let tokens = by_trace(read_table::<LabelToken>(&labels.join(FILES[1]))?.0, |token| &token.trace_id);
    let usable = read_table::<LabelTrace>(&labels.join(FILES[2]))?.0;
    let usable: BTreeSet<&str> =
        usable.iter().filter(|trace| trace.usable).map(|trace| trace.trace_id.as_str()).collect();
    let model = setup::model(args)?;
    super::check_made_by(&made_by, &model, trace_file)?;
    let mut ends: BTreeMap<&str, (usize, Vec<usize>)> = BTreeMap::new();
    let mut n_other_text = 0;
    for trace in traces.iter().filter(|trace| usable.contains(trace.trace_id.as_str())) {
        let checked = trace.checked()?;
        let text = model.tokenizer.byte_offsets(&checked.token_ids[checked.n_prompt..])?;
        if text.bytes.starts_with(trace.text.as_bytes()) {
            ends.insert(&trace.trace_id, (checked.n_prompt, text.ends));
        } else {
            n_other_text += 1;
        }
    }
    let placed = traces.iter().filter_map(|trace| {
        let id = trace.trace_id.as_str();
        let (n_prompt, ends) = ends.get(id)?;
        Some((id, Placed { text: &trace.text, n_prompt: *n_prompt, ends, tokens: tokens.get(id)? }))
    });
    let placed: BTreeMap<&str, Placed<'_>> = placed.collect();
    let rows = compare_sentences(&placed, &scored);
    let n_other = scored.iter().filter(|scores| !placed.contains_key(scores.id.as_str())).count();
    let mut err = std::io::stderr();
    if n_other > 0 {
        writeln!(err, "{n_other} of {} lines left out: no usable labels of a trace of that id", scored.len())?;
    }
    if n_other_text > 0 {
        writeln!(err, "{n_other_text} traces left out: their tokens do not decode to their text")?;
    }
    if rows.is_empty() {
        writeln!(err, "no score has a coefficient: it takes several sentences with labels and different scores")?;
    }
    if args.json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&rows)?)?;
        return Ok(if rows.is_empty() { Done::SomeFailed } else { Done::All });
    }
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:+.3}"));
    let mut text = String::from(
        "| score | traces | sentences | rho | rho given position |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for row in &rows {
        let (rho, partial) = (number(row.rho), number(row.rho_given_position));
        writeln!(text, "| {} | {} | {} | {rho} | {partial} |", row.score, row.n_traces, row.n_sentences)?;
    }
    write!(std::io::stdout(), "{text}")?;
    Ok(if rows.is_empty() { Done::SomeFailed } else { Done::All })
}

/// Rows by their trace, in their order.
fn by_trace<R>(rows: Vec<R>, id: impl Fn(&R) -> &String) -> BTreeMap<String, Vec<R>> {
    let mut all: BTreeMap<String, Vec<R>> = BTreeMap::new();
    for row in rows {
        all.entry(id(&row).clone()).or_default().push(row);
    }
    all
}
