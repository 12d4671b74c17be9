//! `epikv correlate --recorded`: signals from the files of earlier runs, a column at a time, without a model.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use epikv_analyzer::figure::{About, gallery};
use epikv_analyzer::{Asked, AtBudget, Reference, Stored, Summary, join_labels};
use epikv_schemas::{LabelTrace, Trace, read_table};
use serde_json::Value;

use super::between::{self, Between};
use super::files;
use super::labels::NoLabel;
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
    between::check_pools(&plan.settings.pools, &traces)?;
    let (others, levels) = (between::other_groups(args)?, between::levels(args)?);
    let stored = Stored::open(&args.recorded, &traces)?;
    let names: Option<Vec<&str>> = plan.signals.as_ref().map(|rows| rows.iter().map(|row| row.spec.name).collect());
    let asked = Asked { signals: names.as_deref(), shapes: !args.rho_only };
    stored.check(asked)?;
    let model = model(&stored)?;
    let recorded = labelled(args, &stored, &traces)?;
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
    let page = files::Page {
        model: name,
        recorded: &recorded,
        summary: &summary,
        settings,
        charts: &charts,
        sections: &[epikv_analyzer::notes(&found, settings), of_difficulty, of_groups],
        notes: &notes,
    };
    let report = page.markdown(&args.traces);

    job.set("model", model.clone());
    job.set("run", files::run(args, &recorded, settings));
    job.set("smoothing", files::smoothing(settings));
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

/// The model that all files were recorded with.
fn model(stored: &Stored) -> Result<Value> {
    let mut models = stored.files().map(|file| (file.path(), file.provenance().get("model").cloned()));
    let Some((first, model)) = models.next() else { return Ok(Value::Null) };
    if let Some((other, _)) = models.find(|(_, other)| *other != model) {
        bail!("{}: expected signals of the model of {}, got another", other.display(), first.display());
    }
    Ok(model.unwrap_or(Value::Null))
}

/// The traces that were recorded and have usable labels, with these.
fn labelled(args: &CorrelateArgs, stored: &Stored, traces: &[Trace]) -> Result<Recorded> {
    let (label_traces, _) = read_table::<LabelTrace>(&args.labels.join("label_traces.parquet"))?;
    let usable: BTreeSet<&str> = label_traces.iter().filter(|t| t.usable).map(|t| t.trace_id.as_str()).collect();
    let own: Vec<&Trace> = traces.iter().filter(|trace| usable.contains(trace.trace_id.as_str())).collect();
    let mut samples = stored.samples(&own)?;
    if samples.is_empty() {
        bail!(
            "{}: expected usable labels and signals of at least one of the {} traces, got none",
            args.labels.display(),
            traces.len()
        );
    }
    let windows = args.labels.join("label_windows.parquet");
    let windows: Option<&Path> = windows.exists().then_some(&windows);
    let path = args.labels.join("label_tokens.parquet");
    join_labels(&mut samples, &path, windows)?;
    if samples.iter().all(|sample| sample.mask.tokens().is_empty()) {
        return Err(NoLabel { path }.into());
    }
    let missing = own.len() - samples.len();
    Ok(Recorded {
        problem_ids: samples.iter().map(|sample| sample.problem_id.clone()).collect(),
        n_unusable: traces.len() - own.len(),
        failures: if missing > 0 { vec![format!("{missing} traces have no signals in the files")] } else { Vec::new() },
        samples,
        random: None,
    })
}
