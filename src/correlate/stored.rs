//! `epikv correlate --recorded`: signals from the files of earlier runs, a column at a time, without a model.

use anyhow::{Result, bail};
use epikv_analyzer::between::{self, Between};
use epikv_analyzer::figure::{About, gallery};
use epikv_analyzer::{Asked, AtBudget, LabelledSamples, Page, Pool, Reference, Stored, Summary};
use serde_json::Value;

use super::files;
use super::plan::Plan;
use super::recorded::Recorded;
use crate::cli::CorrelateArgs;
use crate::inputs::{self, fingerprint};
use crate::job::Job;
use crate::output::Done;
use crate::{progress, setup};

/// Correlates recorded signals with a folder of labels.
pub(super) fn run(args: &CorrelateArgs, plan: &Plan, mut job: Job, reference: Option<&Reference>) -> Result<Done> {
    if args.pick {
        bail!("--pick replays scores token by token and needs a model: expected no --recorded");
    }
    if !args.compare.is_empty() {
        bail!("--compare needs two signals of a trace at once, and --recorded reads one: expected one of both");
    }
    setup::threads(args.model.threads)?;
    let (traces, _) = inputs::traces(&args.traces, args.model.limit)?;
    Pool::check(&plan.settings.pools, &traces)?;
    let others = between::other_groups(&args.against)?;
    let levels = args.difficulty.as_deref().map(between::levels).transpose()?;
    let stored = Stored::open(&args.recorded, &traces)?;
    let names: Option<Vec<&str>> = plan.signals.as_ref().map(|rows| rows.iter().map(|row| row.spec.name).collect());
    let asked = Asked { signals: names.as_deref(), shapes: !args.rho_only };
    stored.check(asked)?;
    let model = stored.model()?;
    let LabelledSamples { samples, n_usable, n_missing } = stored.labelled(&args.labels, &traces)?;
    let recorded = Recorded {
        problem_ids: samples.iter().map(|sample| sample.problem_id.clone()).collect(),
        n_unusable: traces.len() - n_usable,
        failures: (n_missing > 0)
            .then(|| format!("{n_missing} traces have no signals in the files"))
            .into_iter()
            .collect(),
        samples,
        random: None,
    };
    drop(traces);

    let (samples, settings) = (&recorded.samples, &plan.settings);
    let bar = progress::bar("columns", stored.n_columns(samples, asked, settings), args.model.quiet);
    let study = || stored.study(samples, asked, settings, &|| bar.inc(1));
    let (found, inputs) = rayon::join(study, || inputs(args, &stored));
    let (found, inputs) = (found?, inputs?);
    bar.finish_and_clear();
    let n_layers = model["config"]["n_layers"].as_u64().map_or(stored.n_layers(), |n| n as usize);
    let name = model["id"].as_str().unwrap_or("unknown");
    let about = About { model: name, n_layers, settings, reference };
    let summary = Summary::new(&found, n_layers, settings);
    let none = AtBudget { budget: args.budget.clone(), agreements: Vec::new(), datasets: Vec::new(), n_infeasible: 0 };
    let charts = gallery(&found, &none, &about);
    let values =
        |name: &str| found.iter().flat_map(|d| &d.findings).any(|f| f.signal == name && f.correlation.n_tokens > 0);
    let silent = names.iter().flatten().filter(|name| !values(name)).map(|name| {
        format!("{name} has no value in the files: it was not recorded, or is undefined at every token with a label")
    });
    let notes: Vec<String> = [NOTE.to_owned()].into_iter().chain(silent).collect();
    let between = Between::new(name, &found, samples, others, levels.as_ref(), settings);
    let [of_difficulty, of_groups] = between.markdown(settings);
    let page = Page {
        model: name,
        n_samples: recorded.samples.len(),
        n_unusable: recorded.n_unusable,
        failures: &recorded.failures,
        summary: &summary,
        settings,
        charts: &charts,
        sections: &[epikv_analyzer::notes(&found, settings), of_difficulty, of_groups],
        notes: &notes,
    };
    let report = page.markdown(&args.traces);

    job.set("model", model.clone());
    job.set("run", files::run(args, &recorded, settings));
    job.set("smoothing", settings.smoothing());
    job.set("inputs", inputs);
    let results = files::Results { found: &found, between: &between, replayed: None, charts: &charts, report: &report };
    files::write_results(job, settings, &results)?;
    super::print(args, &recorded, &summary, plan, &notes)?;
    Ok(if recorded.failures.is_empty() { Done::All } else { Done::SomeFailed })
}

/// What a reader of the results must know.
const NOTE: &str = "signals come from files: no rows of random weights, no replay of scores under a budget, no lag profiles, comparisons of \
     signals or kinds of tokens";

/// What every input is.
fn inputs(args: &CorrelateArgs, stored: &Stored) -> Result<Value> {
    let all = files::input_files(args).chain(stored.files().map(|file| file.path().to_owned()));
    Ok(Value::Array(all.map(|path| fingerprint(&path)).collect::<Result<_>>()?))
}
