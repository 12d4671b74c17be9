//! `epikv replay`: recorded traces under policies.

use std::io::Write;

use anyhow::{Context, Result, bail};
use epikv_analyzer::figure::png;
use epikv_eviction::replay::{Ask, Replay, ReplayCells, ReplaySummary, replay};
use epikv_eviction::{Progress, Settings, report};
use epikv_model::Model;
use epikv_schemas::{EvictionRun, LabelToken, Provenance, Trace, read_table};
use serde_json::json;

use crate::cli::ReplayArgs;
use crate::evict::{self, LABELS, announce, check_layers, policies_with_layers};
use crate::inputs::fingerprint;
use crate::output::{Done, RunFolder};
use crate::{progress, setup};

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
    let folder = RunFolder::open(&under.out, FILES, args.model.fresh)?;
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
    let cells = ReplayCells::of(&under.out, args.model.fresh);
    let ask = Ask { settings: &settings, answer_tokens: args.answer_tokens, percents: PERCENTS, cells: Some(&cells) };
    let bar = progress::bar("replay", 0, args.model.quiet);
    let done = replay(&model, &rows, &labels, ask, &|progress| match progress {
        Progress::Planned(total) => bar.set_length(total as u64),
        Progress::Done => bar.inc(1),
    });
    bar.finish_and_clear();
    let done = done?;
    let runs_file = under.out.join("eviction_runs.parquet");
    let runs = if runs_file.exists() { read_table::<EvictionRun>(&runs_file)?.0 } else { Vec::new() };
    let summary = ReplaySummary::of(&done, &runs);
    write(folder, args, (&model, &settings), &done, &summary)?;
    cells.remove()?;
    print(args, &done, &summary)?;
    Ok(if summary.skipped.is_empty() { Done::All } else { Done::SomeFailed })
}

fn read_traces(args: &ReplayArgs) -> Result<Vec<Trace>> {
    let path = &args.traces;
    let (mut rows, _) = read_table::<Trace>(path).with_context(|| format!("--traces {}", path.display()))?;
    rows.truncate(args.model.limit.unwrap_or(usize::MAX));
    if rows.is_empty() {
        bail!("--traces {}: expected traces, got none", path.display());
    }
    Ok(rows)
}

/// Writes the files.
fn write(
    mut folder: RunFolder,
    args: &ReplayArgs,
    (model, settings): (&Model, &Settings),
    done: &Replay,
    summary: &ReplaySummary,
) -> Result<()> {
    let mut provenance = Provenance::new();
    provenance.set("tool", setup::tool());
    provenance.set("model", model.provenance()?);
    provenance.set("run", settings.provenance(&[]));
    let mut inputs = vec![fingerprint(&args.traces)?];
    inputs.extend(args.policies.labels.as_ref().map(|folder| fingerprint(&folder.join(LABELS))).transpose()?);
    provenance.set("inputs", json!(inputs));
    folder.note("command", json!("replay"));
    folder.note("threads", json!(settings.threads));
    folder.note("batch", json!(settings.batch));
    folder.write(FILES[0], &done.rows, &provenance)?;
    folder.write(FILES[1], &done.curves, &provenance)?;
    let facts = [
        ("model", model.origin.id().to_owned()),
        ("traces", summary.n_traces.to_string()),
        ("the budget is", format!("the {} size", settings.matched)),
        ("answers", format!("greedy, at most {} tokens", args.answer_tokens)),
        ("instruction set", epikv_model::instruction_set().to_owned()),
    ];
    let facts: Vec<(String, String)> = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    folder.write_bytes(FILES[2], summary.markdown(&facts).as_bytes())?;
    if let Some(plot) = summary.plot(model.origin.id()) {
        let svg = report::svg(&plot);
        folder.write_bytes(FILES[3], svg.as_bytes())?;
        folder.write_bytes(FILES[4], &png(&svg)?)?;
        folder.write_bytes(FILES[5], plot.csv().as_bytes())?;
    }
    folder.finish()
}

/// The tables on stderr, and with `--json` the figures on stdout.
fn print(args: &ReplayArgs, done: &Replay, summary: &ReplaySummary) -> Result<()> {
    let mut err = std::io::stderr();
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
        writeln!(std::io::stdout(), "{}", serde_json::to_string(summary)?)?;
    }
    Ok(())
}
