//! `epikv replay`: replays recorded traces under policies.

use std::io::Write;

use anyhow::{Context, Result, bail};
use epikv_eviction::replay::{Ask, Replay, ReplayCells, ReplaySummary, replay};
use epikv_eviction::{Progress, Settings, report};
use epikv_model::Model;
use epikv_schemas::{EvictionRun, LabelToken, Trace, read_table};
use serde_json::json;

use crate::cli::ReplayArgs;
use crate::evict::{self, LABELS, announce, check_layers, policies_with_layers};
use crate::job::Job;
use crate::output::Done;
use crate::{inputs, progress, setup};

/// The files of a replay. Curves are there where they were asked for.
const FILES: &[&str] = &[
    "eviction_replay.parquet",
    "eviction_curves.parquet",
    "replay.md",
    "figure_curves.svg",
    "figure_curves.png",
    "figure_curves.csv",
];

/// How many in a hundred tokens are kept or deleted.
const PERCENTS: &[u8] = &[5, 10, 20, 40, 60, 80];

/// Replays the traces.
pub(crate) fn run(args: &ReplayArgs) -> Result<Done> {
    let under = &args.policies;
    let (policies, layers) = policies_with_layers(under)?;
    let mut settings = evict::settings(under, &args.model, policies);
    let job = Job::open("replay", &under.out, FILES, args.model.fresh)?;
    let rows = read_traces(args)?;
    let labels = match &under.labels {
        None => Vec::new(),
        Some(folder) => {
            let path = folder.join(LABELS);
            read_table::<LabelToken>(&path).with_context(|| format!("--labels {}", folder.display()))?.0
        }
    };
    settings.threads = setup::threads(args.model.threads)?;
    let model = setup::model(&args.model)?;
    settings.batch = under.batch.rows(&model, model.decoder.config().max_positions);
    if let Some(layers) = &layers {
        check_layers(layers, rows.iter().map(|trace| trace.problem_id.as_str()), &model)?;
    }
    if !args.model.quiet {
        announce(&settings)?;
    }
    let runs_file = under.out.join("eviction_runs.parquet");
    let runs = if runs_file.exists() { read_table::<EvictionRun>(&runs_file)?.0 } else { Vec::new() };
    let cells = ReplayCells::of(&under.out, args.model.fresh);
    let ask = Ask { settings: &settings, answer_tokens: args.answer_tokens, percents: PERCENTS, cells: Some(&cells) };
    let bar = progress::bar("replay", 0, args.model.quiet);
    let done = replay(&model, &rows, &labels, ask, &|progress| match progress {
        Progress::Planned(total) => bar.set_length(total as u64),
        Progress::Done => bar.inc(1),
    });
    bar.finish_and_clear();
    let done = done?;
    let summary = ReplaySummary::of(&done, &runs);
    write(job, args, (&model, &settings), &done, &summary)?;
    cells.remove()?;
    print(args, &done, &summary)?;
    Ok(if summary.skipped.is_empty() { Done::All } else { Done::SomeFailed })
}

fn read_traces(args: &ReplayArgs) -> Result<Vec<Trace>> {
    let path = &args.traces;
    let read = inputs::traces(path, args.model.limit);
    let (rows, _) = read.with_context(|| format!("--traces {}", path.display()))?;
    if rows.is_empty() {
        bail!("--traces {}: expected traces, got none", path.display());
    }
    Ok(rows)
}

/// Writes the files.
fn write(
    mut job: Job,
    args: &ReplayArgs,
    (model, settings): (&Model, &Settings),
    done: &Replay,
    summary: &ReplaySummary,
) -> Result<()> {
    job.set_model(model)?;
    job.set("run", settings.provenance(&[]));
    let labels = args.policies.labels.as_ref().map(|folder| folder.join(LABELS));
    job.set_inputs([args.traces.clone()].into_iter().chain(labels))?;
    job.note("threads", json!(settings.threads));
    job.note("batch", json!(settings.batch));
    job.table(&done.rows)?;
    job.table(&done.curves)?;
    let facts = [
        ("model", model.origin.id().to_owned()),
        ("traces", summary.n_traces.to_string()),
        ("the budget is", format!("the {} size", settings.matched)),
        ("answers", format!("greedy, at most {} tokens", args.answer_tokens)),
        ("instruction set", epikv_model::instruction_set().to_owned()),
    ];
    let facts: Vec<(String, String)> = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    job.file("replay.md", summary.markdown(&facts))?;
    if let Some(plot) = summary.plot(model.origin.id()) {
        job.figure("figure_curves", &report::svg(&plot), &plot.csv())?;
    }
    job.finish()
}

/// The tables on stderr, and with `--json` the figures on stdout.
fn print(args: &ReplayArgs, done: &Replay, summary: &ReplaySummary) -> Result<()> {
    let mut err = crate::terminal::err();
    if done.n_reused > 0 {
        writeln!(err, "{} rows were there already", done.n_reused)?;
    }
    writeln!(err, "{}", summary.table())?;
    for one in &summary.predictions {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        let (rho, lo, hi) = (number(one.rho), number(one.lo), number(one.hi));
        writeln!(err, "{}: rho {rho} ({lo}..{hi}) with free runs, within a budget", one.measure)?;
    }
    for why in &summary.skipped {
        writeln!(err, "left out: {why}")?;
    }
    writeln!(err, "{} traces -> {}", summary.n_traces, args.policies.out.display())?;
    if args.model.json {
        writeln!(crate::terminal::out(), "{}", serde_json::to_string(summary)?)?;
    }
    Ok(())
}
