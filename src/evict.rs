//! `epikv evict`: problems under policies and budgets, into run files and a report.

mod layers;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use epikv_eviction::{
    Budget, Cells, Comparisons, LabelSet, NamedPolicy, PositionMode, Progress, Runs, Score, Settings, Summary, evict,
    parse_policies, report,
};
use epikv_model::Model;
use epikv_schemas::{LabelToken, Provenance, read_table};
use epikv_tasks::problem::read_problems;
use serde_json::json;

use self::layers::ChosenLayers;
pub(crate) use self::layers::Overlap;
use crate::cli::EvictArgs;
use crate::output::{Done, RunFolder, input};
use crate::{label, progress, setup, trace};

/// The files of an eviction run.
const FILES: &[&str] = &["eviction_runs.parquet", "eviction_timings.parquet", "report.md"];

/// The file of a label folder that is read.
const LABELS: &str = "label_tokens.parquet";

/// Runs the experiment, or goes on with one.
pub(crate) fn run(args: &EvictArgs) -> Result<Done> {
    let layers = args.layers_from.as_deref();
    let layers = layers.map(|path| ChosenLayers::read(path, args.layers_dataset.as_deref())).transpose()?;
    let mut settings = settings(args, layers.as_ref())?;
    let comparisons = comparisons(args)?;
    // A shard writes cells and nothing else, so that several can work in one folder.
    let folder = match settings.shard {
        None => Some(RunFolder::extend(&args.out, FILES, args.model.fresh)?),
        Some(_) => None,
    };
    if args.model.fresh {
        remove_cells(&args.out)?;
    }
    let cells = Cells::open(&args.out, args.record_steps)?;
    let mut problems = read_problems(&args.problems)?;
    problems.truncate(args.model.limit.unwrap_or(usize::MAX));
    if let Some(layers) = &layers {
        layers.check_problems(&problems)?;
    }
    let labels = args.labels.as_deref().map(read_labels).transpose()?;
    settings.threads = setup::threads(args.model.threads)?;
    let model = setup::model(&args.model)?;
    if let Some(layers) = &layers {
        label::check_made_by(&layers.made_by, &model, &layers.path)?;
    }
    if !args.model.quiet {
        announce(&settings)?;
    }
    let bar = progress::bar("evict", 0, args.model.quiet);
    let runs = evict(&model, &problems, labels.as_ref(), &settings, Some(&cells), &|progress| match progress {
        Progress::Planned(total) => bar.set_length(total as u64),
        Progress::Done => bar.inc(1),
    });
    bar.finish_and_clear();
    let runs = runs?;
    let done = if runs.failures.is_empty() { Done::All } else { Done::SomeFailed };
    let Some(folder) = folder else {
        for failure in &runs.failures {
            writeln!(std::io::stderr(), "failed: {failure}")?;
        }
        let (out, n) = (args.out.display(), runs.rows.len());
        writeln!(std::io::stderr(), "{n} generations are done -> {out}; run without --shard for the tables")?;
        return Ok(done);
    };
    let summary = Summary::of(&runs, &comparisons);
    write(folder, cells, &runs, &summary, &model, &settings, args)?;
    print(&summary, &args.out)?;
    if runs.n_resumed > 0 {
        writeln!(std::io::stderr(), "{} generations were there already", runs.n_resumed)?;
    }
    if args.model.json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(done)
}

/// Removes what an unfinished run has left, and the flight recorder of a finished one.
fn remove_cells(folder: &Path) -> Result<()> {
    let unfinished = folder.join(".cells");
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).with_context(|| format!("removing {}", unfinished.display()))?;
    }
    let steps = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_part = |path: &std::path::PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("eviction_steps-"))
    };
    for path in steps.filter(is_part) {
        std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(())
}

/// The policies with all their parts, and warnings, before anything runs.
fn announce(settings: &Settings) -> Result<()> {
    let mut err = std::io::stderr();
    for policy in &settings.policies {
        writeln!(err, "{policy}: {}", policy.policy)?;
        if policy.policy.position == PositionMode::Rewound {
            writeln!(
                err,
                "warning: {policy}: positions are rewound at each eviction, so that kept keys seem to lie in the future; \
                 only for reproducing runs that were made so"
            )?;
        }
    }
    Ok(())
}

/// The policies: those that were typed, or one for each score to swap.
fn policies(args: &EvictArgs) -> Result<Vec<NamedPolicy>> {
    let Some(swap) = &args.swap else {
        return Ok(parse_policies([args.policies.as_str()], args.labels.is_some())?);
    };
    let Some(scores) = swap.strip_prefix("score=") else {
        bail!("--swap {swap}: expected score=A,B,.., got something else");
    };
    let hold = args.hold.as_ref().map_or(String::new(), |hold| format!(";{hold}"));
    let all = scores.split(',').map(|score| Ok(format!("window;score={}{hold}", score.trim()).parse::<NamedPolicy>()?));
    all.collect()
}

/// What the policies are compared with, by the names that the tables give them.
fn comparisons(args: &EvictArgs) -> Result<Comparisons> {
    let name = |text: &str| Ok::<_, epikv_eviction::Error>(text.parse::<NamedPolicy>()?.name);
    let primary = args.primary.iter().map(|(a, b)| Ok((name(a)?, name(b)?))).collect::<Result<_>>()?;
    Ok(Comparisons { baseline: args.baseline.as_deref().map(name).transpose()?, primary })
}

/// Checks what was typed.
fn settings(args: &EvictArgs, layers: Option<&ChosenLayers>) -> Result<Settings> {
    trace::check(&args.sampling)?;
    let policies = policies(args)?;
    let policies = match layers {
        Some(layers) => layers.apply(policies)?,
        None => policies,
    };
    let budgets = args.budgets.split(',').map(|text| Ok(text.trim().parse::<Budget>()?));
    Ok(Settings {
        max_new: args.max_new,
        temperature: args.sampling.temperature,
        top_p: args.sampling.top_p,
        samples: args.samples,
        seed: args.model.seed,
        shard: args.shard,
        kernel: setup::kernel(),
        machine: setup::machine(),
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
    cells: Cells,
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
    inputs.extend(args.layers_from.as_deref().map(input).transpose()?);
    let mut provenance = Provenance::new();
    provenance.set("tool", setup::tool());
    provenance.set("model", model.provenance()?);
    provenance.set("run", settings.provenance(&runs.rows));
    provenance.set("inputs", json!(inputs));
    folder.note("command", json!("evict"));
    folder.note("threads", json!(settings.threads));
    folder.note("batch", json!(settings.batch));
    folder.note("tokens", json!({ "prefill": runs.ledger.prefill, "decode": runs.ledger.decode }));
    folder.write(FILES[0], &runs.rows, &provenance)?;
    folder.write(FILES[1], &runs.timings, &provenance)?;
    let report = report::markdown(summary, "Eviction", &facts(summary, model, settings));
    folder.write_bytes(FILES[2], report.as_bytes())?;
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
        ("kernel", settings.kernel.clone()),
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
