//! `epikv label`: a traces file into label files.

mod exchange;
mod report;
mod summarise;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use epikv_labeler::{
    ArmComparison, Config, Estimate, Journal, Labels, Progress, Rates, Settings, Summary, compare_arms, label,
};
use epikv_model::Model;
use epikv_model::decoder::AttentionKernel;
use epikv_schemas::{LabelWindow, Provenance, Trace, read_table};
use epikv_words::Hint;
use serde_json::json;

use crate::cli::{LabelArgs, ModelArgs, Preset};
use crate::output::{Done, RunFolder, input};
use crate::{progress, setup};

/// The files of a labelling run.
const FILES: &[&str] =
    &["label_windows.parquet", "label_tokens.parquet", "label_traces.parquet", "label_timings.parquet"];

/// The parts of flipping windows, with `--refine`.
const REFINED: &str = "label_refined.parquet";

/// The pairs of windows, with `--pairs`.
const PAIRS: &str = "label_pairs.parquet";

/// What was regenerated so far, for as long as the run has not ended.
const JOURNAL: &str = "label_journal.jsonl";

/// All files that the run will write.
fn files(args: &LabelArgs) -> Vec<&'static str> {
    let more = [(args.refine, REFINED), (args.pairs > 0, PAIRS)];
    FILES.iter().copied().chain(more.into_iter().filter(|(wanted, _)| *wanted).map(|(_, file)| file)).collect()
}

/// Labels a file of traces.
pub(crate) fn run(args: &LabelArgs) -> Result<Done> {
    if let (Some(traces), Some(labels)) = (&args.traces, &args.labels) {
        if let Some(scores) = &args.compare_sentences {
            return exchange::run_sentences(scores, labels, traces, &args.model);
        }
        if let Some(file) = &args.export {
            return exchange::run_export(labels, traces, file, &args.model);
        }
    }
    match (&args.traces, &args.out) {
        (Some(traces), Some(out)) if let Some(lines) = &args.import => {
            exchange::run_import(lines, traces, out, &args.model)
        }
        (traces, None) if !args.summary.is_empty() => summarise::run(&args.summary, traces.as_deref(), &args.model),
        (Some(traces), Some(out)) if args.arms.is_empty() => run_traces(args, traces, out),
        (Some(traces), Some(out)) => run_arms(args, traces, out),
        _ => bail!("expected --traces and --out, or --summary"),
    }
}

/// Labels traces with one filler after another, and compares what came out.
fn run_arms(args: &LabelArgs, trace_file: &Path, out: &Path) -> Result<Done> {
    for (i, filler) in args.arms.iter().enumerate() {
        if args.arms[..i].contains(filler) {
            bail!("--arms: expected different fillers, got {filler} twice");
        }
    }
    let mut done = Done::All;
    let mut arms = Vec::new();
    for filler in &args.arms {
        let name = filler.to_string().replace(':', "-");
        writeln!(std::io::stderr(), "\n== {filler}")?;
        let folder = out.join(&name);
        let own = LabelArgs {
            filler: Some(filler.clone()),
            model: ModelArgs { json: false, ..args.model.clone() },
            ..args.clone()
        };
        if run_traces(&own, trace_file, &folder)? == Done::SomeFailed {
            done = Done::SomeFailed;
        }
        arms.push((name, read_table::<LabelWindow>(&folder.join(FILES[0]))?.0));
    }
    let pairs = arms.iter().enumerate().flat_map(|(i, first)| arms[i + 1..].iter().map(move |second| (first, second)));
    let comparisons: Vec<ArmComparison> =
        pairs.map(|((a, first), (b, second))| compare_arms((a, first), (b, second))).collect();
    if args.model.json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&comparisons)?)?;
    } else {
        write!(std::io::stdout(), "{}", report::arms_table(&comparisons)?)?;
    }
    Ok(done)
}

/// Labels traces into a folder.
fn run_traces(args: &LabelArgs, trace_file: &Path, out: &Path) -> Result<Done> {
    let mut config = config(args)?;
    let folder = if args.dry_run { None } else { Some(RunFolder::open(out, &files(args), args.model.fresh)?) };
    let (mut traces, made_by) = read_table::<Trace>(trace_file)?;
    check_unique(&traces, trace_file)?;
    traces.truncate(args.model.limit.unwrap_or(usize::MAX));
    if traces.is_empty() {
        bail!("{} holds no trace", trace_file.display());
    }
    let threads = setup::threads(args.model.threads)?;
    let model = setup::model_with_kernel(&args.model, args.kernel)?;
    let longest = traces.iter().map(|trace| trace.token_ids.len()).max().unwrap_or(0) + config.max_new;
    let batch = args.batch.rows(&model, longest);
    config = Config::try_from(Settings { threads, batch, ..Settings::clone(&config) })?;
    check_made_by(&made_by, &model, trace_file)?;
    let Some(folder) = folder else {
        let rates = args.rates.map_or_else(|| Rates::measure(&model, &config), Ok)?;
        return report::print_estimate(&Estimate::of(&model, &traces, &config), rates, args.model.json);
    };
    let journal_file = out.join(JOURNAL);
    if args.model.fresh && journal_file.is_file() {
        std::fs::remove_file(&journal_file).with_context(|| format!("removing {}", journal_file.display()))?;
    }
    // Before the journal is there: whoever sees it may send a signal.
    setup::interrupted()?;
    let mut journal = Journal::open(&journal_file, &model, &config)?;
    if !journal.is_empty() {
        writeln!(std::io::stderr(), "{} regenerations of an earlier run are taken over", journal.len())?;
    }
    let against =
        args.against.as_deref().map(|folder| read_table::<LabelWindow>(&folder.join(FILES[0]))).transpose()?;
    let labels = run_labels(&model, &traces, &config, &mut journal, args.model.quiet)?;
    write(folder, &labels, &model, &config, args.kernel, trace_file)?;
    journal.remove()?;
    let summary = Summary::of(&labels, &traces);
    report::print(&labels, &summary, out)?;
    if let Some((occluded, _)) = &against {
        let names = (config.name(), args.against.as_deref().unwrap_or(out).display().to_string());
        let pair = compare_arms((&names.0, &labels.windows), (&names.1, occluded));
        write!(std::io::stderr(), "{}", report::agreement_table(&pair)?)?;
    }
    if args.model.json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(if labels.failures.is_empty() { Done::All } else { Done::SomeFailed })
}

/// A trace that stands twice would give two rows of one key.
pub(crate) fn check_unique(traces: &[Trace], path: &Path) -> Result<()> {
    let mut seen = std::collections::BTreeMap::new();
    for (row, trace) in traces.iter().enumerate() {
        if let Some(first) = seen.insert(&trace.trace_id, row) {
            bail!("{}: expected one row a trace, got {} in rows {first} and {row}", path.display(), trace.trace_id);
        }
    }
    Ok(())
}

/// Files whose token ids are those of another tokenizer.
#[derive(Debug, thiserror::Error)]
#[error("{}: made with another vocabulary: expected tokenizer {expected}, got {got}", path.display())]
pub(crate) struct OtherTokenizer {
    path: PathBuf,
    expected: String,
    got: String,
}

impl Hint for OtherTokenizer {
    fn hint(&self) -> Option<String> {
        Some("--model must be the one that the traces were made or imported with".to_owned())
    }
}

/// Token ids mean something only to the tokenizer that made them; other weights are allowed but worth a word.
pub(crate) fn check_made_by(made_by: &Provenance, model: &Model, path: &Path) -> Result<()> {
    let made = made_by.get("model");
    let stored = |key: &str| made.and_then(|m| m[key].as_str().map(str::to_owned));
    if let Some(tokenizer) = stored("tokenizer_sha256").filter(|sha| sha != model.tokenizer.sha256()) {
        let got = format!("{} of {}", model.tokenizer.sha256(), model.tokenizer.place());
        return Err(OtherTokenizer { path: path.to_owned(), expected: tokenizer, got }.into());
    }
    if stored("weights_sha256").is_some_and(|sha| model.origin.weights_sha256().is_ok_and(|own| own != sha)) {
        tracing::warn!(traces = %path.display(), model = model.origin.id(), "the traces were made with other weights");
    }
    Ok(())
}

/// Checks what was typed.
fn config(args: &LabelArgs) -> Result<Config> {
    let base = match args.preset {
        Some(Preset::Paper) => Settings::paper(),
        None => Settings::default(),
    };
    let settings = Settings {
        window: args.window.unwrap_or(base.window),
        stride: args.stride.unwrap_or(base.stride),
        max_new: args.max_new.unwrap_or(base.max_new),
        intervention: args.intervention.with_lag(args.lag),
        filler: args.filler.clone().unwrap_or(base.filler),
        by: args.by,
        refine: args.refine,
        pairs: args.pairs,
        seed: args.model.seed,
        stop: args.stop,
        protocol: args.protocol,
        answer: args.answer,
        include_unusable: args.include_unusable,
        noise_floor: args.noise_floor,
        ..base
    };
    Ok(Config::try_from(settings)?)
}

/// Labels with a progress bar.
fn run_labels(model: &Model, traces: &[Trace], config: &Config, journal: &mut Journal, quiet: bool) -> Result<Labels> {
    let mut bar = progress::bar("", 0, true);
    let mut watch = |progress| match progress {
        Progress::Planned { phase, total } => {
            bar.finish_and_clear();
            bar = progress::bar(phase, total, quiet);
        }
        Progress::Done => bar.inc(1),
    };
    let labels = label(model, traces, config, Some(journal), &*setup::interrupted()?, &mut watch)?;
    bar.finish_and_clear();
    Ok(labels)
}

/// Writes the files of a run.
fn write(
    mut folder: RunFolder,
    labels: &Labels,
    model: &Model,
    config: &Config,
    kernel: AttentionKernel,
    traces: &Path,
) -> Result<()> {
    let mut provenance = Provenance::new();
    provenance.set("tool", setup::tool());
    provenance.set("model", model.provenance()?);
    let mut run = config.provenance();
    run["kernel"] = json!(kernel.name());
    provenance.set("run", run);
    provenance.set("inputs", json!([input(traces)?]));
    let settings: &Settings = config;
    folder.note("command", json!("label"));
    folder.note("threads", json!(settings.threads));
    folder.note("batch", json!(settings.batch));
    folder.note("protocol", json!(settings.protocol));
    let ledger = labels.ledger;
    folder.note("tokens", json!({ "prefill": ledger.prefill, "draft": ledger.draft, "decode": ledger.decode }));
    folder.note("bytes_to_host", json!(ledger.bytes_to_host));
    folder.write(FILES[0], &labels.windows, &provenance)?;
    folder.write(FILES[1], &labels.tokens, &provenance)?;
    folder.write(FILES[2], &labels.traces, &provenance)?;
    folder.write(FILES[3], &labels.timings, &provenance)?;
    if config.refine {
        folder.write(REFINED, &labels.refined, &provenance)?;
    }
    if config.pairs > 0 {
        folder.write(PAIRS, &labels.pairs, &provenance)?;
    }
    folder.finish()
}
