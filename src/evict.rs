//! `epikv evict`: problems under policies and budgets, into run files and a report.

mod declared;
mod files;
mod layers;
mod policies;
mod replay;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use epikv_eviction::{Cells, LabelSet, Progress, Records, Settings, Summary, check, evict};
use epikv_schemas::{LabelToken, read_table};
use epikv_tasks::problem::read_problems;

use self::declared::declare;
use self::files::{About, FILES};
use self::layers::ChosenLayers;
pub(crate) use self::layers::Overlap;
use self::policies::{announce, check_compared, comparisons, policies};
use crate::cli::EvictArgs;
use crate::output::{Done, RunFolder};
use crate::{progress, setup, trace};

/// The file of a label folder that is read.
const LABELS: &str = "label_tokens.parquet";

/// Runs the experiment, or goes on with one.
pub(crate) fn run(args: &EvictArgs) -> Result<Done> {
    let layers = args.layers_from.as_deref();
    let layers = layers.map(|path| ChosenLayers::read(path, args.layers_dataset.as_deref())).transpose()?;
    let mut settings = settings(args, layers.as_ref())?;
    if let Some(traces) = &args.replay {
        return replay::run(args, traces, settings, layers.as_ref());
    }
    let comparisons = comparisons(args)?;
    let Some(problem_file) = &args.problems else { bail!("--problems: expected a file, got none") };
    let mut problems = read_problems(problem_file)?;
    problems.truncate(args.model.limit.unwrap_or(usize::MAX));
    let labels = args.labels.as_deref().map(read_labels).transpose()?;
    settings.threads = setup::threads(args.model.threads)?;
    let model = setup::model(&args.model)?;
    settings.batch = args.batch.rows(&model, model.decoder.config().max_positions);
    if let Some(layers) = &layers {
        layers.check(problems.iter().map(|problem| problem.id.as_str()), &model)?;
    }
    check(&model, &problems, labels.as_ref(), &settings)?;
    let records = Records { steps: args.record_steps, signals: !args.record_signals.is_empty() };
    let cells = Cells::open(&args.out, records, args.model.fresh)?;
    check_compared(&comparisons, &settings, &cells)?;
    // Only now, when all that was asked for can be done, is anything removed or written. A shard writes cells and nothing
    // else, so that several can work in one folder.
    let folder = match settings.shard {
        None => Some(RunFolder::extend(&args.out, FILES, args.model.fresh)?),
        Some(_) => None,
    };
    let (comparisons, late) = declare(&args.out, comparisons, &cells, args.model.fresh)?;
    for late in &late {
        writeln!(std::io::stderr(), "warning: {late}")?;
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
    let mut summary = Summary::of(&runs, &comparisons);
    summary.drift = cells.drift(&runs.rows)?;
    let about = About { summary: &summary, model: &model, settings: &settings, args, problems: problem_file };
    files::write(folder, cells, &runs, &about)?;
    files::print(&summary, &args.out)?;
    if runs.n_resumed > 0 {
        writeln!(std::io::stderr(), "{} generations were there already", runs.n_resumed)?;
    }
    if args.model.json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(done)
}

/// Checks what was typed.
fn settings(args: &EvictArgs, layers: Option<&ChosenLayers>) -> Result<Settings> {
    trace::check(&args.sampling)?;
    let policies = policies(args)?;
    let policies = match layers {
        Some(layers) => layers.apply(policies)?,
        None => policies,
    };
    Ok(Settings {
        max_new: args.max_new,
        temperature: args.sampling.temperature,
        top_p: args.sampling.top_p,
        samples: args.samples,
        seed: args.model.seed,
        shard: args.shard,
        machine: setup::machine(),
        eviction_seeds: args.eviction_seeds,
        matched: args.matched,
        signals: args.record_signals.clone(),
        skip_infeasible: args.skip_infeasible,
        prompt: trace::prompt_options(&args.prompt),
        ..Settings::new(policies, args.budgets.clone())
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
