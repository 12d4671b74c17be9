//! The files of an eviction run.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use epikv_analyzer::figure::png;
use epikv_eviction::{Cells, Runs, Score, Settings, Summary, report};
use epikv_model::Model;
use epikv_schemas::Provenance;
use serde_json::json;

use super::LABELS;
use crate::cli::EvictArgs;
use crate::inputs::fingerprint;
use crate::output::RunFolder;
use crate::setup;

/// The files of an eviction run. The figures are there where something ran under a budget.
pub(super) const FILES: &[&str] = &[
    "eviction_runs.parquet",
    "eviction_timings.parquet",
    "report.md",
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
pub(super) fn write(mut folder: RunFolder, cells: Cells, runs: &Runs, about: &About<'_>) -> Result<()> {
    let About { summary, model, settings, args } = about;
    // Labels determine something only where they are replayed.
    let replayed = settings.policies.iter().any(|policy| policy.policy.score == Score::Labels);
    let labels = args.policies.labels.as_ref().filter(|_| replayed).map(|folder| folder.join(LABELS));
    let mut inputs = vec![fingerprint(&args.problems)?];
    inputs.extend(labels.as_deref().map(fingerprint).transpose()?);
    inputs.extend(args.policies.layers_from.as_deref().map(fingerprint).transpose()?);
    let mut provenance = Provenance::new();
    provenance.set("tool", setup::tool());
    provenance.set("model", model.provenance()?);
    provenance.set("run", settings.provenance(&runs.rows));
    provenance.set("inputs", json!(inputs));
    folder.note("command", json!("evict"));
    folder.note("threads", json!(settings.threads));
    folder.note("batch", json!(settings.batch));
    folder.note("tokens", json!({ "prefill": runs.ledger.prefill, "decode": runs.ledger.decode }));
    folder.note("bytes_to_host", json!(runs.ledger.bytes_to_host));
    folder.note("process_peak_bytes", json!(setup::peak_bytes()));
    folder.write(FILES[0], &runs.rows, &provenance)?;
    folder.write(FILES[1], &runs.timings, &provenance)?;
    let text = report::markdown(summary, "Eviction", &facts(summary, model, settings));
    folder.write_bytes(FILES[2], text.as_bytes())?;
    folder.write_bytes(FILES[3], report::csv(summary).as_bytes())?;
    if let Some(plot) = report::accuracy_plot(summary, model.origin.id()) {
        let svg = report::svg(&plot);
        folder.write_bytes(FILES[4], svg.as_bytes())?;
        folder.write_bytes(FILES[5], &png(&svg)?)?;
        folder.write_bytes(FILES[6], plot.csv().as_bytes())?;
    }
    for part in cells.recorded(&runs.rows)? {
        folder.list(part);
    }
    folder.finish()?;
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
    let mut err = std::io::stderr();
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
