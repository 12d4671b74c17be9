//! `epikv evict`: problems under policies and budgets, into run files and a report.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use epikv_eviction::{Budget, LabelSet, Progress, Runs, Score, Settings, Summary, evict, parse_policies, report};
use epikv_model::Model;
use epikv_schemas::{LabelToken, Provenance, read_table};
use epikv_tasks::problem::read_problems;
use serde_json::json;

use crate::cli::EvictArgs;
use crate::output::{Done, RunFolder, input};
use crate::{progress, setup, trace};

/// The files of an eviction run.
const FILES: &[&str] = &["eviction_runs.parquet", "eviction_timings.parquet", "report.md"];

/// The file of a label folder that is read.
const LABELS: &str = "label_tokens.parquet";

/// Runs the experiment.
pub(crate) fn run(args: &EvictArgs) -> Result<Done> {
    let mut settings = settings(args)?;
    let folder = RunFolder::open(&args.out, FILES, args.model.fresh)?;
    let mut problems = read_problems(&args.problems)?;
    problems.truncate(args.model.limit.unwrap_or(usize::MAX));
    let labels = args.labels.as_deref().map(read_labels).transpose()?;
    settings.threads = setup::threads(args.model.threads)?;
    let model = setup::model(&args.model)?;
    let bar = progress::bar("evict", 0, args.model.quiet);
    let runs = evict(&model, &problems, labels.as_ref(), &settings, &|progress| match progress {
        Progress::Planned(total) => bar.set_length(total as u64),
        Progress::Done => bar.inc(1),
    });
    bar.finish_and_clear();
    let runs = runs?;
    let summary = Summary::of(&runs);
    write(folder, &runs, &summary, &model, &settings, args)?;
    print(&summary, &args.out)?;
    if args.model.json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(if runs.failures.is_empty() { Done::All } else { Done::SomeFailed })
}

/// Checks what was typed.
fn settings(args: &EvictArgs) -> Result<Settings> {
    trace::check(&args.sampling)?;
    let policies = parse_policies([args.policies.as_str()], args.labels.is_some())?;
    let budgets = args.budgets.split(',').map(|text| Ok(text.trim().parse::<Budget>()?));
    Ok(Settings {
        max_new: args.max_new,
        temperature: args.sampling.temperature,
        top_p: args.sampling.top_p,
        seed: args.model.seed,
        skip_infeasible: args.skip_infeasible,
        prompt: trace::prompt_options(&args.prompt),
        batch: args.model.batch,
        ..Settings::new(policies, budgets.collect::<Result<_>>()?)
    })
}

fn read_labels(folder: &Path) -> Result<LabelSet> {
    let path = folder.join(LABELS);
    let (tokens, _) = read_table::<LabelToken>(&path).with_context(|| format!("--labels {}", folder.display()))?;
    let labels = LabelSet::of(&tokens);
    if labels.is_empty() {
        bail!("{}: expected labels, got none", path.display());
    }
    Ok(labels)
}

/// Writes the files of a run.
fn write(
    mut folder: RunFolder,
    runs: &Runs,
    summary: &Summary,
    model: &Model,
    settings: &Settings,
    args: &EvictArgs,
) -> Result<()> {
    // Labels determine something only where they are replayed.
    let replayed = settings.policies.iter().any(|policy| policy.policy.score == Score::Labels);
    let labels = args.labels.as_ref().filter(|_| replayed).map(|folder| folder.join(LABELS));
    let mut inputs = vec![input(&args.problems)?];
    inputs.extend(labels.as_deref().map(input).transpose()?);
    let mut provenance = Provenance::new();
    provenance.set("tool", setup::tool());
    provenance.set("model", model.provenance()?);
    provenance.set("run", settings.provenance());
    provenance.set("inputs", json!(inputs));
    folder.note("command", json!("evict"));
    folder.note("threads", json!(settings.threads));
    folder.note("batch", json!(settings.batch));
    folder.note("tokens", json!({ "prefill": runs.ledger.prefill, "decode": runs.ledger.decode }));
    folder.write(FILES[0], &runs.rows, &provenance)?;
    folder.write(FILES[1], &runs.timings, &provenance)?;
    let report = report::markdown(summary, "Eviction", &facts(summary, model, settings));
    folder.write_bytes(FILES[2], report.as_bytes())?;
    folder.finish()
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
        ("kernel", "fused".to_owned()),
        ("batch, threads", format!("{}, {}", settings.batch, settings.threads)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// The tables on stderr.
fn print(summary: &Summary, out: &Path) -> Result<()> {
    let mut err = std::io::stderr();
    writeln!(err, "{}", report::accuracy(summary))?;
    let compared = report::comparison(summary);
    if !compared.is_empty() {
        writeln!(err, "{compared}")?;
    }
    for note in report::notes(summary) {
        writeln!(err, "{note}")?;
    }
    writeln!(err, "{} problems -> {}", summary.n_problems, out.display())?;
    Ok(())
}
