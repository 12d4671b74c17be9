//! The files of an eviction run.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use epikv_eviction::{Cells, Runs, Settings, Summary, report};
use epikv_model::Model;
use epikv_signals::Need;
use serde_json::json;

use super::LABELS;
use crate::cli::EvictArgs;
use crate::job::Job;
use crate::pages::{DETAILS, REPORT_LINES, short};
use crate::setup;

/// The files of an eviction run. The figures are there where something ran under a budget.
pub(super) const FILES: &[&str] = &[
    "eviction_runs.parquet",
    "eviction_timings.parquet",
    "report.md",
    DETAILS,
    "report.csv",
    "figure_accuracy.svg",
    "figure_accuracy.png",
    "figure_accuracy.csv",
];

/// What is written besides the tables themselves.
pub(super) struct About<'a> {
    pub(super) summary: &'a Summary,
    pub(super) model: &'a Model,
    pub(super) settings: &'a Settings,
    pub(super) args: &'a EvictArgs,
}

/// Writes the files of a run.
pub(super) fn write(mut job: Job, cells: Cells, runs: &Runs, about: &About<'_>) -> Result<()> {
    let About { summary, model, settings, args } = about;
    // Labels determine something only where they are replayed.
    let replayed = settings.policies.iter().any(|policy| policy.policy.score.needs(Need::Labels));
    let labels = args.policies.labels.as_ref().filter(|_| replayed).map(|folder| folder.join(LABELS));
    let layers = args.policies.layers_from.clone();
    job.set_model(model)?;
    job.set("run", settings.provenance(&runs.rows));
    job.set_inputs([args.problems.clone()].into_iter().chain(labels).chain(layers))?;
    job.note("threads", json!(settings.threads));
    job.note("batch", json!(settings.batch));
    job.note("tokens", json!({ "prefill": runs.ledger.prefill, "decode": runs.ledger.decode }));
    job.note("bytes_to_host", json!(runs.ledger.bytes_to_host));
    job.note("process_peak_bytes", json!(setup::peak_bytes()));
    job.table(&runs.rows)?;
    job.table(&runs.timings)?;
    let text = report::markdown(summary, "Eviction", &facts(summary, model, settings));
    job.file("report.md", short(&text, REPORT_LINES))?;
    job.file(DETAILS, text)?;
    job.file("report.csv", report::csv(summary))?;
    if let Some(plot) = report::accuracy_plot(summary, model.origin.id()) {
        job.figure("figure_accuracy", &report::svg(&plot), &plot.csv())?;
    }
    for part in cells.recorded(&runs.rows)? {
        job.list(part);
    }
    job.finish()?;
    Ok(cells.merged()?)
}

/// What the report says of model and run.
fn facts(summary: &Summary, model: &Model, settings: &Settings) -> Vec<(String, String)> {
    let chosen = if settings.temperature == 0.0 {
        "greedy".to_owned()
    } else {
        format!("temperature {}, top-p {}, seed {}", settings.temperature, settings.top_p, settings.seed)
    };
    [
        ("model", model.origin.id().to_owned()),
        ("problems", summary.n_problems.to_string()),
        ("tokens", format!("{chosen}, at most {} new", settings.max_new)),
        ("prompt", settings.prompt.style.name().to_owned()),
        ("samples", settings.samples.to_string()),
        ("the budget is", format!("the {} size", settings.matched)),
        ("instruction set", epikv_model::instruction_set().to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// The tables on stderr.
pub(super) fn print(summary: &Summary, out: &Path) -> Result<()> {
    let mut err = crate::terminal::err();
    writeln!(err, "{}", report::accuracy(summary))?;
    for table in [report::swap(summary), report::comparison(summary)] {
        if !table.is_empty() {
            writeln!(err, "{table}")?;
        }
    }
    for note in report::notes(summary) {
        writeln!(err, "{note}")?;
    }
    if let Some(bytes) = setup::peak_bytes() {
        writeln!(err, "the process held {:.1} MiB at most, weights included", bytes as f64 / f64::from(1 << 20))?;
    }
    writeln!(err, "{} problems -> {}", summary.n_problems, out.display())?;
    Ok(())
}
