//! `epikv label`: a traces file into label files.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use epikv_labeler::{
    AnswerKind, Config, Estimate, Journal, Known, Labels, NoiseFloor, Progress, Protocol, Rates, Settings, Share, Stop,
    Summary, label, shares,
};
use epikv_model::Model;
use epikv_model::session::Ledger;
use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Provenance, Trace, read_table};
use serde_json::json;

use crate::cli::{AnswerName, LabelArgs, Preset, ProtocolName, StopName};
use crate::output::{Done, RunFolder, input};
use crate::{progress, setup};

/// The files of a labelling run.
const FILES: &[&str] =
    &["label_windows.parquet", "label_tokens.parquet", "label_traces.parquet", "label_timings.parquet"];

/// What was regenerated so far, for as long as the run has not ended.
const JOURNAL: &str = "label_journal.jsonl";

/// Labels a file of traces.
pub(crate) fn run(args: &LabelArgs) -> Result<Done> {
    match (&args.traces, &args.out, &args.summary) {
        (Some(traces), Some(out), None) => run_traces(args, traces, out),
        (_, _, Some(folder)) => print_shares(folder, args.model.seed, args.model.json),
        _ => bail!("expected --traces and --out, or --summary"),
    }
}

/// Labels traces into a folder.
fn run_traces(args: &LabelArgs, trace_file: &Path, out: &Path) -> Result<Done> {
    let mut config = config(args)?;
    let folder = if args.dry_run { None } else { Some(RunFolder::open(out, FILES, args.model.fresh)?) };
    let (mut traces, made_by) = read_table::<Trace>(trace_file)?;
    check_unique(&traces, trace_file)?;
    traces.truncate(args.model.limit.unwrap_or(usize::MAX));
    if traces.is_empty() {
        bail!("{} holds no trace", trace_file.display());
    }
    let threads = setup::threads(args.model.threads)?;
    config = Config::try_from(Settings { threads, ..Settings::clone(&config) })?;
    let model = setup::model(&args.model)?;
    check_made_by(&made_by, &model, trace_file)?;
    let Some(folder) = folder else {
        let rates = args.rates.map_or_else(|| Rates::measure(&model, &config), Ok)?;
        return print_estimate(&Estimate::of(&model, &traces, &config), rates, args.model.json);
    };
    let journal_file = out.join(JOURNAL);
    if args.model.fresh && journal_file.is_file() {
        std::fs::remove_file(&journal_file).with_context(|| format!("removing {}", journal_file.display()))?;
    }
    let mut journal = Journal::open(&journal_file, &model, &config)?;
    if !journal.is_empty() {
        writeln!(std::io::stderr(), "{} regenerations of an earlier run are taken over", journal.len())?;
    }
    let labels = run_labels(&model, &traces, &config, &mut journal, args.model.quiet)?;
    write(folder, &labels, &model, &config, trace_file)?;
    journal.remove()?;
    let summary = Summary::of(&labels, &traces);
    print(&labels, &summary, out)?;
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

/// Token ids mean something only to the tokenizer that made them; other weights are allowed but worth a word.
pub(crate) fn check_made_by(made_by: &Provenance, model: &Model, path: &Path) -> Result<()> {
    let made = made_by.get("model");
    let stored = |key: &str| made.and_then(|m| m[key].as_str().map(str::to_owned));
    if let Some(tokenizer) = stored("tokenizer_sha256").filter(|sha| sha != model.tokenizer.sha256()) {
        bail!(
            "{}: the traces were made with another vocabulary: expected tokenizer {tokenizer}, got {} of {}",
            path.display(),
            model.tokenizer.sha256(),
            model.origin.id()
        );
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
        filler: args.filler.unwrap_or(base.filler),
        seed: args.model.seed,
        stop: match args.stop {
            StopName::Eos => Stop::Eos,
            StopName::AtBox => Stop::AtBox,
        },
        protocol: match args.protocol {
            ProtocolName::Fast => Protocol::Fast,
            ProtocolName::Naive => Protocol::Naive,
        },
        answer: match args.answer {
            AnswerName::Math => AnswerKind::Math,
            AnswerName::Text => AnswerKind::Text,
        },
        include_unusable: args.include_unusable,
        noise_floor: args.noise_floor,
        batch: args.model.batch,
        ..base
    };
    Ok(Config::try_from(settings)?)
}

/// Labels with a progress bar.
fn run_labels(model: &Model, traces: &[Trace], config: &Config, journal: &mut Journal, quiet: bool) -> Result<Labels> {
    let mut bar = progress::bar("", 0, true);
    let labels = label(model, traces, config, Some(journal), &mut |progress| match progress {
        Progress::Planned { phase, total } => {
            bar.finish_and_clear();
            bar = progress::bar(phase, total, quiet);
        }
        Progress::Done => bar.inc(1),
    })?;
    bar.finish_and_clear();
    Ok(labels)
}

/// Writes the files of a run.
fn write(mut folder: RunFolder, labels: &Labels, model: &Model, config: &Config, traces: &Path) -> Result<()> {
    let mut provenance = Provenance::new();
    provenance.set("tool", setup::tool());
    provenance.set("model", model.provenance()?);
    provenance.set("run", config.provenance());
    provenance.set("inputs", json!([input(traces)?]));
    let settings: &Settings = config;
    folder.note("command", json!("label"));
    folder.note("threads", json!(settings.threads));
    folder.note("batch", json!(settings.batch));
    folder.note("protocol", json!(settings.protocol));
    let ledger = labels.ledger;
    folder.note("tokens", json!({ "prefill": ledger.prefill, "draft": ledger.draft, "decode": ledger.decode }));
    folder.write(FILES[0], &labels.windows, &provenance)?;
    folder.write(FILES[1], &labels.tokens, &provenance)?;
    folder.write(FILES[2], &labels.traces, &provenance)?;
    folder.write(FILES[3], &labels.timings, &provenance)?;
    folder.finish()
}

/// The important shares of the labels in a folder.
fn print_shares(folder: &Path, seed: u64, as_json: bool) -> Result<Done> {
    let shares = shares(
        &read_table::<LabelWindow>(&folder.join(FILES[0]))?.0,
        &read_table::<LabelToken>(&folder.join(FILES[1]))?.0,
        &read_table::<LabelTrace>(&folder.join(FILES[2]))?.0,
        seed,
    );
    if as_json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&shares)?)?;
        return Ok(Done::All);
    }
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let mut table = String::from("| dataset | mapping | divided by | traces | share | 95 % interval |\n");
    table.push_str("| --- | --- | --- | ---: | ---: | --- |\n");
    for Share { dataset, mapping, divided_by, n_traces, share, interval } in &shares {
        let bounds = interval.map_or("-".to_owned(), |(low, high)| format!("{low:.3} to {high:.3}"));
        let share = number(*share);
        writeln!(table, "| {dataset} | {mapping} | {divided_by} | {n_traces} | {share} | {bounds} |")?;
    }
    write!(std::io::stdout(), "{table}")?;
    Ok(Done::All)
}

/// What the run would cost.
fn print_estimate(estimate: &Estimate, rates: Rates, as_json: bool) -> Result<Done> {
    let (seconds, naive_seconds) = estimate.seconds(rates);
    if as_json {
        let report =
            json!({ "estimate": estimate, "rates": rates, "seconds": seconds, "naive_seconds": naive_seconds });
        writeln!(std::io::stdout(), "{report}")?;
    }
    let Estimate { n_traces, n_failed, n_windows, prefill, draft, decode, naive, weight_bytes, cache_bytes } = estimate;
    let mib = |bytes: &usize| *bytes as f64 / f64::from(1 << 20);
    writeln!(
        std::io::stderr(),
        "{n_traces} traces, {n_failed} that cannot be labelled, {n_windows} windows\n\
         tokens: {prefill} read, {draft} read as drafts, {decode} decoded if no answer changes; naive: {} read, {} decoded\n\
         memory: {:.1} MiB of weights, {:.1} MiB of keys and values\n\
         at {:.0} tokens read and {:.0} decoded a second: {seconds:.0} s, naive {naive_seconds:.0} s",
        naive.0,
        naive.1,
        mib(weight_bytes),
        mib(cache_bytes),
        rates.prefill,
        rates.decode,
    )?;
    Ok(Done::All)
}

/// How well the labels recover what the answers are known to need.
fn print_known(out: &mut impl Write, known: &Known) -> Result<()> {
    let auc = known.auc.map_or("-".to_owned(), |auc| format!("{auc:.3}"));
    writeln!(
        out,
        "known needs of {} traces: windows that hide a value flip {}/{}, clear ones {}/{}, {} between; AUC {auc}",
        known.n_traces, known.n_hiding_flipped, known.n_hiding, known.n_clear_flipped, known.n_clear, known.n_between
    )?;
    for (n, values) in &known.by_mentions {
        writeln!(
            out,
            "  values stated {n}x: {} of {} missed, {} never hidden by one window",
            values.n_missed, values.n_hidden, values.n_never_hidden
        )?;
    }
    Ok(())
}

/// The summary on stderr.
fn print(labels: &Labels, summary: &Summary, out: &Path) -> Result<()> {
    let mut err = std::io::stderr();
    for failure in &labels.failures {
        writeln!(err, "failed: {}", failure.error)?;
    }
    writeln!(
        err,
        "{} traces: {} usable, {} not {:?}, {} wrong and left out, {} failed -> {}",
        summary.n_traces + summary.n_incorrect + summary.n_failed,
        summary.n_usable,
        summary.n_traces - summary.n_usable,
        summary.unusable,
        summary.n_incorrect,
        summary.n_failed,
        out.display()
    )?;
    writeln!(err, "{} windows of usable traces: {:?}", summary.n_windows, summary.outcomes)?;
    for (mapping, share) in &summary.important_share {
        match share {
            Some(share) => writeln!(err, "important share, {mapping}: {share:.3}")?,
            None => writeln!(err, "important share, {mapping}: - (no usable trace)")?,
        }
    }
    if let Some(known) = &summary.known {
        print_known(&mut err, known)?;
    }
    let NoiseFloor { n_windows, n_identity_changed, n_repeated_changed } = summary.noise_floor;
    writeln!(
        err,
        "noise floor: of {n_windows} windows the answer changes for {n_identity_changed} overwritten by their own tokens, \
         for {n_repeated_changed} occluded once more"
    )?;
    let Ledger { prefill, draft, decode } = labels.ledger;
    writeln!(err, "tokens: {prefill} read, {draft} read as drafts, {decode} decoded")?;
    Ok(())
}
