//! `epikv label`: labels the tokens of a traces file.

mod report;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use epikv_labeler::intervention::{DEFAULT_LAG, Intervention};
use epikv_labeler::{
    ArmComparison, Config, Estimate, Journal, Labels, Progress, Rates, Settings, Summary, compare_arms, folder, label,
};
use epikv_model::Model;
use epikv_model::decoder::AttentionKernel;
use epikv_schemas::Trace;
use epikv_words::Word;
use serde_json::json;

use crate::cli::{LabelArgs, ModelArgs, Preset};
use crate::inputs;
use crate::job::Job;
use crate::output::{Done, NothingToDo};
use crate::report::Refused;
use crate::{progress, setup};

/// The files of every labelling run.
const FILES: [&str; 4] = [folder::WINDOWS, folder::TOKENS, folder::TRACES, folder::TIMINGS];

/// What was regenerated so far, for as long as the run has not ended.
const JOURNAL: &str = "label_journal.jsonl";

/// All files that the run will write.
fn files(args: &LabelArgs) -> Vec<&'static str> {
    let more = [(args.refine, folder::REFINED), (args.pairs > 0, folder::PAIRS)];
    FILES.into_iter().chain(more.into_iter().filter(|(wanted, _)| *wanted).map(|(_, file)| file)).collect()
}

/// Labels a file of traces.
pub(crate) fn run(args: &LabelArgs) -> Result<Done> {
    if args.arms.is_empty() {
        run_traces(args, &args.traces, &args.out)
    } else {
        run_arms(args, &args.traces, &args.out)
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
        writeln!(crate::terminal::err(), "\n== {filler}")?;
        let folder = out.join(&name);
        let own = LabelArgs {
            filler: Some(filler.clone()),
            model: ModelArgs { json: false, ..args.model.clone() },
            ..args.clone()
        };
        match run_traces(&own, trace_file, &folder) {
            Ok(Done::All) => {}
            Ok(Done::SomeFailed) => done = Done::SomeFailed,
            // Finished by a run that was killed in a later arm.
            Err(error) if error.is::<NothingToDo>() => writeln!(crate::terminal::err(), "{error:#}")?,
            Err(error) => return Err(error),
        }
        arms.push((name, folder::windows(&folder)?.0));
    }
    let pairs = arms.iter().enumerate().flat_map(|(i, first)| arms[i + 1..].iter().map(move |second| (first, second)));
    let comparisons: Vec<ArmComparison> =
        pairs.map(|((a, first), (b, second))| compare_arms((a, first), (b, second))).collect();
    if args.model.json {
        writeln!(crate::terminal::out(), "{}", serde_json::to_string(&comparisons)?)?;
    } else {
        write!(crate::terminal::out(), "{}", report::arms_table(&comparisons)?)?;
    }
    Ok(done)
}

/// Labels traces into a folder.
fn run_traces(args: &LabelArgs, trace_file: &Path, out: &Path) -> Result<Done> {
    let mut config = config(args)?;
    // Before anything is made: it may not be there.
    let against = args.against.as_deref().map(folder::windows).transpose()?;
    let journal_file = out.join(JOURNAL);
    let job = if args.dry_run { None } else { Some(open(args, out, &journal_file)?) };
    let (traces, made_by) = inputs::traces(trace_file, args.model.limit)?;
    if traces.is_empty() {
        bail!("{} holds no trace", trace_file.display());
    }
    let threads = setup::threads(args.model.threads)?;
    let model = setup::model_with_kernel(&args.model, args.kernel)?;
    let longest = traces.iter().map(|trace| trace.token_ids.len()).max().unwrap_or(0) + config.max_new;
    let batch = args.batch.rows(&model, longest);
    config = Config::try_from(Settings { threads, batch, ..Settings::clone(&config) })?;
    inputs::check_made_by(&made_by, &model, trace_file)?;
    let Some(job) = job else {
        let rates = args.rates.map_or_else(|| Rates::measure(&model, &config), Ok)?;
        return report::print_estimate(&Estimate::of(&model, &traces, &config), rates, args.model.json);
    };
    if args.model.fresh && journal_file.is_file() {
        std::fs::remove_file(&journal_file).with_context(|| format!("removing {}", journal_file.display()))?;
    }
    // Before the journal is there: whoever sees it may send a signal.
    setup::interrupted()?;
    let mut journal = Journal::open(&journal_file, &model, &config)?;
    if !journal.is_empty() {
        writeln!(crate::terminal::err(), "{} regenerations of an earlier run are taken over", journal.len())?;
    }
    let labels = run_labels(&model, &traces, &config, &mut journal, args.model.quiet)?;
    write(job, &labels, &model, &config, args.kernel, trace_file)?;
    journal.remove()?;
    let summary = Summary::of(&labels, &traces);
    report::print(&labels, &summary, out)?;
    if let Some((occluded, _)) = &against {
        let names = (config.name(), args.against.as_deref().unwrap_or(out).display().to_string());
        let pair = compare_arms((&names.0, &labels.windows), (&names.1, occluded));
        write!(crate::terminal::err(), "{}", report::agreement_table(&pair)?)?;
    }
    if args.model.json {
        writeln!(crate::terminal::out(), "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(if labels.failures.is_empty() { Done::All } else { Done::SomeFailed })
}

/// Opens the run's folder. The journal of a run that was killed after it had put its files in place is removed.
fn open(args: &LabelArgs, out: &Path, journal: &Path) -> Result<Job> {
    Job::open("label", out, &files(args), args.model.fresh).inspect_err(|error| {
        if error.is::<NothingToDo>() {
            let _ = std::fs::remove_file(journal);
        }
    })
}

/// Tokens after a window that can still see it.
fn lag(args: &LabelArgs) -> Result<usize> {
    if let Some(lag) = args.lag.filter(|_| !matches!(args.intervention, Intervention::Evict { .. })) {
        let what = format!("--lag {lag}: expected --intervention evict beside it, got {}", args.intervention.name());
        return Err(Refused::new(what, "the other interventions have no lag").into());
    }
    Ok(args.lag.unwrap_or(DEFAULT_LAG))
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
        intervention: args.intervention.with_lag(lag(args)?),
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
    mut job: Job,
    labels: &Labels,
    model: &Model,
    config: &Config,
    kernel: AttentionKernel,
    traces: &Path,
) -> Result<()> {
    let mut run = config.provenance();
    run["kernel"] = json!(kernel.name());
    job.set_model(model)?;
    job.set("run", run);
    job.set_inputs([traces])?;
    let settings: &Settings = config;
    job.note("threads", json!(settings.threads));
    job.note("batch", json!(settings.batch));
    job.note("protocol", json!(settings.protocol));
    let ledger = labels.ledger;
    job.note("tokens", json!({ "prefill": ledger.prefill, "draft": ledger.draft, "decode": ledger.decode }));
    job.note("bytes_to_host", json!(ledger.bytes_to_host));
    job.table(&labels.windows)?;
    job.table(&labels.tokens)?;
    job.table(&labels.traces)?;
    job.table(&labels.timings)?;
    if config.refine {
        job.table(&labels.refined)?;
    }
    if config.pairs > 0 {
        job.table(&labels.pairs)?;
    }
    job.finish()
}
