//! The files of a run.

use anyhow::Result;
use epikv_analyzer::figure::{Plot, png, svg};
use epikv_analyzer::{DatasetFindings, Settings, Summary, WindowFrom, markdown, rows};
use epikv_model::Model;
use epikv_schemas::Provenance;
use epikv_signals::Smoother;
use serde_json::{Value, json};

use super::{Plan, Recorded, recordings};
use crate::cli::CorrelateArgs;
use crate::output::{RunFolder, input};
use crate::setup;

pub(super) const FILES: &[&str] = &[
    "signals_hs.parquet",
    "signals_kv.parquet",
    "correlations.parquet",
    "correlations_by_trace.parquet",
    "figure_layers.svg",
    "figure_layers.png",
    "figure_layers.csv",
    "report.md",
];

/// Writes everything; files of signals that were not recorded, and the figure where no signal has layers, are left out.
#[expect(clippy::too_many_arguments, reason = "each is one thing that is written or described")]
pub(super) fn write(
    mut folder: RunFolder,
    args: &CorrelateArgs,
    plan: &Plan,
    model: &Model,
    recorded: &Recorded,
    found: &[DatasetFindings],
    plot: Option<&Plot>,
    report: &str,
) -> Result<()> {
    let settings = &plan.settings;
    let mut signals = Provenance::new();
    signals.set("tool", setup::tool());
    signals.set("model", model.provenance()?);
    signals.set("run", json!({ "limit": args.model.limit }));
    signals.set("inputs", json!([input(&args.traces)?]));
    let mut provenance = signals.clone();
    provenance.set("run", run(args, recorded, settings));
    provenance.set("smoothing", smoothing(settings));
    let labels = ["label_tokens.parquet", "label_traces.parquet"].map(|file| args.labels.join(file));
    let inputs = [&args.traces].into_iter().chain(&labels).chain(&args.reference);
    provenance.set("inputs", Value::Array(inputs.map(|path| input(path)).collect::<Result<_>>()?));

    folder.note("command", json!("correlate"));
    folder.note("threads", json!(rayon::current_num_threads()));
    let recordings = recordings(recorded);
    if let Some(rows) = rows::signals_hs(&recordings) {
        folder.write(FILES[0], &rows, &signals)?;
    }
    if let Some(rows) = rows::signals_kv(&recordings) {
        folder.write(FILES[1], &rows, &signals)?;
    }
    folder.write(FILES[2], &rows::correlations(found, settings), &provenance)?;
    folder.write(FILES[3], &rows::correlations_by_trace(found, settings.window), &provenance)?;
    if let Some(plot) = plot {
        let drawn = svg(plot);
        folder.write_bytes(FILES[4], drawn.as_bytes())?;
        folder.write_bytes(FILES[5], &png(&drawn)?)?;
        folder.write_bytes(FILES[6], plot.csv().as_bytes())?;
    }
    folder.write_bytes(FILES[7], report.as_bytes())?;
    folder.finish()
}

/// What determines the coefficients.
fn run(args: &CorrelateArgs, recorded: &Recorded, settings: &Settings) -> Value {
    json!({
        "signals": args.signals,
        "bootstrap": settings.replicates,
        "seed": settings.seed,
        "ci": settings.fisher.name(),
        "ci_level": settings.confidence.level(),
        "random_weights": recorded.random,
        "limit": args.model.limit,
    })
}

fn smoothing(settings: &Settings) -> Value {
    let names: Vec<String> = settings.smoothers.iter().map(|s| s.name(settings.window)).collect();
    json!({
        "smoothers": names,
        "window": settings.window,
        "ddof": 0,
        "eps": 1e-6,
        "decay": Smoother::decay(settings.window),
        "init": "first",
        "from": match settings.window_from { WindowFrom::Decode => "decode", WindowFrom::Prompt => "prompt" },
    })
}

/// The page of a run.
pub(super) fn report(
    args: &CorrelateArgs,
    model: &Model,
    recorded: &Recorded,
    summary: &Summary,
    settings: &Settings,
    has_figure: bool,
    notes: &[String],
) -> String {
    let name =
        |path: &std::path::Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut page = vec![
        "# Signals against labels".to_owned(),
        format!(
            "Model {}, {} layers. {} traces of {} with usable labels, {} without, {} failed. Smoothers over {} tokens, \
             started at {}.",
            model.origin.id(),
            summary.n_layers,
            recorded.samples.len(),
            name(&args.traces),
            recorded.n_unusable,
            recorded.failures.len(),
            settings.window,
            match settings.window_from {
                WindowFrom::Decode => "the first decoded token",
                WindowFrom::Prompt => "the prompt's first token",
            }
        ),
    ];
    if has_figure {
        page.push("![rho over layers](figure_layers.svg)".to_owned());
    }
    page.push(markdown(summary, settings).trim_end().to_owned());
    if !notes.is_empty() {
        page.push(notes.iter().map(|note| format!("- {note}")).collect::<Vec<_>>().join("\n"));
    }
    if !recorded.failures.is_empty() {
        page.push(format!(
            "Failed:\n\n{}",
            recorded.failures.iter().map(|f| format!("- {f}")).collect::<Vec<_>>().join("\n")
        ));
    }
    page.push("All columns: `correlations.parquet`; each trace: `correlations_by_trace.parquet`.".to_owned());
    page.join("\n\n") + "\n"
}
