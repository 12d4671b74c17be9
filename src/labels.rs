//! `epikv labels`: summaries of label folders, and labels from and for other programs.

use std::io::Write;

use anyhow::Result;
use epikv_labeler::folder::{TOKENS, TRACES};
use epikv_labeler::folder_summary::{self, FolderSummary};
use epikv_labeler::lines::{export_lines, import_lines};
use epikv_labeler::sentences::{self, Compared};
use epikv_model::tokenizer::Tokenizer;
use epikv_schemas::{Provenance, Trace, fs, read_table};
use serde_json::json;

use crate::cli::{LabelsCommand, LabelsCompareArgs, LabelsExportArgs, LabelsImportArgs, LabelsSummaryArgs, ModelArgs};
use crate::inputs::check_made_by;
use crate::job::Job;
use crate::output::{Done, check_alone};
use crate::setup;

/// Runs what was asked for.
pub(crate) fn run(command: &LabelsCommand) -> Result<Done> {
    match command {
        LabelsCommand::Summary(args) => summary(args),
        LabelsCommand::Import(args) => import(args),
        LabelsCommand::Export(args) => export(args),
        LabelsCommand::Compare(args) => compare(args),
    }
}

/// Prints what the labels in some folders say.
fn summary(args: &LabelsSummaryArgs) -> Result<Done> {
    let traces = args.traces.as_deref().map(read_table::<Trace>).transpose()?;
    let rows = traces.as_ref().map(|(rows, _)| rows.as_slice());
    let made_by = traces.as_ref().map(|(_, made_by)| made_by);
    let found = args
        .labels
        .iter()
        .map(|folder| FolderSummary::read(folder, rows, args.model.seed, || tokenizer_of(made_by, &args.model)));
    let found = found.collect::<Result<Vec<_>>>()?;
    let text = if args.model.json { serde_json::to_string(&found)? + "\n" } else { folder_summary::markdown(&found) };
    write!(crate::terminal::out(), "{text}")?;
    Ok(Done::All)
}

/// The tokenizer of the model, if it is the one that made the traces.
fn tokenizer_of(made_by: Option<&Provenance>, args: &ModelArgs) -> Result<Option<Tokenizer>> {
    let tokenizer = setup::model(args)?.tokenizer;
    let made = made_by.and_then(|made_by| made_by.get("model")?["tokenizer_sha256"].as_str());
    if made.is_some_and(|made| made != tokenizer.sha256()) {
        tracing::warn!("missed values are explained with --model, the model that the traces were made with");
        return Ok(None);
    }
    Ok(Some(tokenizer))
}

/// Takes over labels that were made elsewhere.
fn import(args: &LabelsImportArgs) -> Result<Done> {
    let mut job = Job::open("labels import", &args.out, &[TOKENS, TRACES], args.fresh)?;
    let imported = import_lines(&args.lines, &args.traces)?;
    job.set("run", json!({ "imported": true }));
    job.set_inputs([&args.traces, &args.lines])?;
    job.table(&imported.tokens)?;
    job.table(&imported.traces)?;
    job.finish()?;
    let (n, n_without) = (imported.traces.len(), imported.n_without);
    writeln!(crate::terminal::err(), "{n} traces with labels, {n_without} without -> {}", args.out.display())?;
    Ok(if n_without == 0 { Done::All } else { Done::SomeFailed })
}

/// Writes the labels of a folder as JSON lines.
fn export(args: &LabelsExportArgs) -> Result<Done> {
    let text = export_lines(&args.labels, &args.traces)?;
    check_alone(&args.out, text.as_bytes(), args.fresh)?;
    fs::write_atomic(&args.out, text.as_bytes())?;
    writeln!(crate::terminal::err(), "{} traces with labels -> {}", text.lines().count(), args.out.display())?;
    Ok(Done::All)
}

/// Compares the labels of a folder with scores of sentences.
fn compare(args: &LabelsCompareArgs) -> Result<Done> {
    let scored = sentences::read_scores(&args.scores)?;
    let (traces, made_by) = read_table::<Trace>(&args.traces)?;
    let model = setup::model(&args.model)?;
    check_made_by(&made_by, &model, &args.traces)?;
    let Compared { rows, n_other, n_other_text } =
        sentences::compare_folder(&args.labels, &traces, &scored, &model.tokenizer)?;
    let mut err = crate::terminal::err();
    if n_other > 0 {
        writeln!(err, "{n_other} of {} lines left out: no usable labels of a trace of that id", scored.len())?;
    }
    if n_other_text > 0 {
        writeln!(err, "{n_other_text} traces left out: their tokens do not decode to their text")?;
    }
    if rows.is_empty() {
        writeln!(err, "no score has a coefficient: it takes several sentences with labels and different scores")?;
    }
    if args.model.json {
        writeln!(crate::terminal::out(), "{}", serde_json::to_string(&rows)?)?;
    } else {
        write!(crate::terminal::out(), "{}", sentences::markdown(&rows))?;
    }
    Ok(if rows.is_empty() { Done::SomeFailed } else { Done::All })
}
