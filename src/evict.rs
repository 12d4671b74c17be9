//! `epikv evict`: decodes problems under policies and budgets, and writes run files and a report.

mod files;
mod policies;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use epikv_eviction::{
    Cells, ChosenLayers, LabelSet, NamedPolicy, Progress, Records, Settings, Summary, check, declare, evict,
};
use epikv_model::Model;
use epikv_schemas::{LabelToken, read_table};
use epikv_tasks::problem::read_problems;

use self::files::{About, FILES};
pub(crate) use self::policies::announce;
use self::policies::{check_compared, comparisons, policies};
use crate::cli::{EvictArgs, ModelArgs, PolicyArgs};
use crate::inputs::check_made_by;
use crate::job::Job;
use crate::output::Done;
use crate::{output, progress, setup, trace};

/// The file of a label folder that is read.
pub(crate) const LABELS: &str = "label_tokens.parquet";

/// Runs the experiment, or goes on with one.
pub(crate) fn run(args: &EvictArgs) -> Result<Done> {
    trace::check(&args.sampling)?;
    let under = &args.policies;
    let (policies, layers) = policies_with_layers(under)?;
    let mut settings = Settings {
        max_new: args.max_new,
        temperature: args.sampling.temperature,
        top_p: args.sampling.top_p,
        samples: args.samples,
        shard: args.shard,
        signals: args.record_signals.clone(),
        prompt: trace::prompt_options(&args.prompt),
        ..settings(under, &args.model, policies)
    };
    let comparisons = comparisons(args)?;
    let mut problems = read_problems(&args.problems)?;
    problems.truncate(args.model.limit.unwrap_or(usize::MAX));
    let labels = under.labels.as_deref().map(read_labels).transpose()?;
    settings.threads = setup::threads(args.model.threads)?;
    let model = setup::model(&args.model)?;
    settings.batch = under.batch.rows(&model, model.decoder.config().max_positions);
    if let Some(layers) = &layers {
        check_layers(layers, problems.iter().map(|problem| problem.id.as_str()), &model)?;
    }
    check(&model, &problems, labels.as_ref(), &settings)?;
    let records = Records { steps: args.record_steps, signals: !args.record_signals.is_empty() };
    output::complete(&under.out)?;
    let cells = Cells::open(&under.out, records, args.model.fresh)?;
    check_compared(&comparisons, &settings, &cells)?;
    // Only now, when all that was asked for can be done, is anything removed or written. A shard writes cells and nothing
    // else, so that several can work in one folder.
    let (job, _shard_lock) = match settings.shard {
        None => (Some(Job::resume("evict", &under.out, FILES, args.model.fresh)?), None),
        Some((i, n)) => (None, Some(output::lock(&under.out, &format!("shard-{i}-of-{n}"))?)),
    };
    let (comparisons, late) = declare(&under.out, comparisons, &cells, args.model.fresh)?;
    for late in &late {
        writeln!(crate::terminal::err(), "warning: {late}")?;
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
    let Some(job) = job else {
        for failure in &runs.failures {
            writeln!(crate::terminal::err(), "failed: {failure}")?;
        }
        let (out, n) = (under.out.display(), runs.rows.len());
        writeln!(crate::terminal::err(), "{n} generations are done -> {out}; run without --shard for the tables")?;
        return Ok(done);
    };
    let mut summary = Summary::of(&runs, &comparisons);
    summary.drift = cells.drift(&runs.rows)?;
    let about = About { summary: &summary, model: &model, settings: &settings, args };
    files::write(job, cells, &runs, &about)?;
    files::print(&summary, &under.out)?;
    if runs.n_resumed > 0 {
        writeln!(crate::terminal::err(), "{} generations were there already", runs.n_resumed)?;
    }
    if args.model.json {
        writeln!(crate::terminal::out(), "{}", serde_json::to_string(&summary)?)?;
    }
    Ok(done)
}

/// The policies that were typed, and the layers that some of them take from a file.
pub(crate) fn policies_with_layers(args: &PolicyArgs) -> Result<(Vec<NamedPolicy>, Option<ChosenLayers>)> {
    let layers = args.layers_from.as_deref();
    let layers = layers.map(|path| ChosenLayers::read(path, args.layers_dataset.as_deref())).transpose()?;
    let policies = policies(args)?;
    let policies = match &layers {
        Some(layers) => layers.apply(policies)?,
        None => policies,
    };
    Ok((policies, layers))
}

/// Refuses layers that were chosen on a problem of the run, and those of a model with another vocabulary.
pub(crate) fn check_layers<'p>(
    layers: &ChosenLayers,
    problem_ids: impl Iterator<Item = &'p str>,
    model: &Model,
) -> Result<()> {
    layers.check_problems(problem_ids)?;
    check_made_by(layers.made_by(), model, layers.path())
}

/// Settings of policies under budgets.
pub(crate) fn settings(args: &PolicyArgs, model: &ModelArgs, policies: Vec<NamedPolicy>) -> Settings {
    Settings {
        seed: model.seed,
        machine: setup::machine(),
        eviction_seeds: args.eviction_seeds,
        matched: args.matched,
        skip_infeasible: args.skip_infeasible,
        ..Settings::new(policies, args.budgets.clone())
    }
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
