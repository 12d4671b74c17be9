//! The files of a run.

use std::path::PathBuf;

use anyhow::Result;
use epikv_analyzer::compare::Comparison;
use epikv_analyzer::enrichment::Enrichment;
use epikv_analyzer::figure::{Chart, ENDINGS, GALLERY};
use epikv_analyzer::predictable::GivenSurprisal;
use epikv_analyzer::{AtBudget, DatasetFindings, Settings, rows};
use epikv_model::Model;
use rayon::prelude::*;
use serde_json::{Value, json};

use super::plan::Plan;
use super::recorded::Recorded;
use crate::cli::CorrelateArgs;
use crate::job::Job;
use crate::pages::{DETAILS, REPORT_LINES, short};
use epikv_analyzer::between::Between;

/// Every file that a run may write.
pub(super) fn files() -> Vec<String> {
    let figures = GALLERY.iter().flat_map(|name| ENDINGS.map(|ending| format!("{name}.{ending}")));
    FILES.iter().map(|file| (*file).to_owned()).chain(figures).collect()
}

const FILES: &[&str] = &[
    "signals_hs.parquet",
    "signals_kv.parquet",
    "signals_token.parquet",
    "signals_attn.parquet",
    "signals_age.parquet",
    "signals_score.parquet",
    "correlations.parquet",
    "correlations_by_trace.parquet",
    "correlations_by_lag.parquet",
    "comparisons.parquet",
    "enrichment.parquet",
    "band_surprisal.parquet",
    "difficulty.parquet",
    "heterogeneity.parquet",
    "group_pairs.parquet",
    "agreement.parquet",
    "selection.parquet",
    "report.md",
    DETAILS,
];

/// What needs all signals of a trace at once, or its tokens.
pub(super) struct Replayed<'r> {
    pub(super) compared: &'r [Comparison],
    pub(super) enriched: &'r [Enrichment],
    pub(super) predictable: &'r [GivenSurprisal],
    pub(super) decided: &'r AtBudget,
}

impl Replayed<'_> {
    fn write(&self, job: &mut Job, settings: &Settings) -> Result<()> {
        job.table(&rows::comparisons(self.compared))?;
        job.table(&rows::enrichment(self.enriched))?;
        if !self.predictable.is_empty() {
            job.table(&rows::band_surprisal(self.predictable, settings))?;
        }
        job.table(&self.decided.agreement_rows())?;
        job.table(&self.decided.selection_rows())
    }
}

/// What was found.
pub(super) struct Results<'r> {
    pub(super) found: &'r [DatasetFindings],
    pub(super) between: &'r Between,
    /// `None` where signals come from files.
    pub(super) replayed: Option<Replayed<'r>>,
    pub(super) charts: &'r [Chart],
    pub(super) report: &'r str,
}

/// Writes everything; files of signals that were not recorded are left out.
pub(super) fn write(
    mut job: Job,
    args: &CorrelateArgs,
    plan: &Plan,
    model: &Model,
    recorded: &Recorded,
    results: &Results<'_>,
) -> Result<()> {
    let settings = &plan.settings;
    job.note("bytes_to_host", json!(model.decoder.bytes_to_host()));
    job.set_model(model)?;
    job.set("run", json!({ "limit": args.model.limit, "window_from": settings.window_from.name() }));
    job.set_inputs([&args.traces])?;
    let recordings = recorded.recordings();
    job.table_if(rows::signals_hs(&recordings))?;
    job.table_if(rows::signals_kv(&recordings))?;
    job.table_if(rows::signals_token(&recordings))?;
    job.table_if(rows::signals_attn(&recordings))?;
    job.table_if(rows::signals_age(&recordings))?;
    job.table_if(rows::signals_score(&recordings))?;
    job.set("run", run(args, recorded, settings));
    job.set("smoothing", settings.smoothing());
    job.set_inputs(input_files(args))?;
    write_results(job, settings, results)
}

/// Every file that was read, besides those of signals.
pub(super) fn input_files(args: &CorrelateArgs) -> impl Iterator<Item = PathBuf> + use<> {
    let labels = ["label_tokens.parquet", "label_traces.parquet", "label_windows.parquet"];
    let labels = labels.map(|file| args.labels.join(file)).into_iter().filter(|path| path.exists());
    let others: Vec<_> = args.against.iter().map(|folder| folder.join("correlations_by_trace.parquet")).collect();
    let more = [&args.reference, &args.difficulty].map(Clone::clone).into_iter().flatten();
    [args.traces.clone()].into_iter().chain(labels).chain(more).chain(others)
}

/// Writes what was found, without the signals, and ends the run.
pub(super) fn write_results(mut job: Job, settings: &Settings, results: &Results<'_>) -> Result<()> {
    job.note("threads", json!(rayon::current_num_threads()));
    job.table(&rows::correlations(results.found, settings))?;
    job.table(&rows::correlations_by_trace(results.found, settings.window))?;
    let Between { difficulty, groups, .. } = results.between;
    if !difficulty.is_empty() {
        job.table(&rows::difficulty(difficulty))?;
    }
    if !groups.pairs.is_empty() {
        job.table(&rows::heterogeneity(groups))?;
        job.table(&rows::group_pairs(groups))?;
    }
    if settings.max_lag > 0 && results.replayed.is_some() {
        job.table(&rows::correlations_by_lag(results.found, settings.window))?;
    }
    if let Some(replayed) = &results.replayed {
        replayed.write(&mut job, settings)?;
    }
    // Rendering is most of the work.
    let drawn = results.charts.par_iter().map(Chart::files).collect::<Result<Vec<_>, _>>()?;
    for (file, content) in drawn.into_iter().flatten() {
        job.file(&file, content)?;
    }
    job.file("report.md", short(results.report, REPORT_LINES))?;
    job.file(DETAILS, results.report)?;
    job.finish()
}

/// What determines the coefficients.
pub(super) fn run(args: &CorrelateArgs, recorded: &Recorded, settings: &Settings) -> Value {
    json!({
        "signals": args.signals,
        "kernel": args.kernel.name(),
        "budget": args.budget,
        "pick": args.pick,
        "compare": args.compare,
        "pool": args.pool,
        "problem_ids": recorded.problem_ids,
        "bootstrap": settings.replicates,
        "surrogates": settings.surrogates,
        "max_lag": settings.max_lag,
        "seed": settings.seed,
        "ci": settings.fisher.name(),
        "ci_level": settings.confidence.level(),
        "random_weights": recorded.random,
        "limit": args.model.limit,
    })
}
