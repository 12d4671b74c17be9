//! Labels of many traces: controls first, then the windows of every trace whose control can be used.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use epikv_model::Model;
use epikv_model::session::{Finish, Ledger};
use epikv_schemas::Trace;

use crate::error::Result;
use crate::run::config::Config;
use crate::run::job::{Job, Unusable};
use crate::run::journal::Journal;
use crate::run::noise::{NoiseFloor, count_changed, sample};
use crate::run::pairs::pairs;
use crate::run::plan::{Contexts, Plan};
use crate::run::refine::refine;
use crate::run::regenerate::{Context, Regenerated, Scored, read_prefix};
use crate::run::regenerations::Regenerations;
use crate::run::rows::{finish_trace, timing, window_row};
use crate::windows::filler::FillerSource;

pub use crate::run::labels::{Failure, Labels, Progress};

/// Labels traces. A trace that fails is listed; the others go on. What `journal` holds is not computed again.
///
/// Once `interrupted` is set, the regenerations under way are finished and no other is begun.
///
/// # Errors
/// If the filler does not fit the model, the model itself fails, or the run was interrupted.
pub fn label(
    model: &Model,
    traces: &[Trace],
    config: &Config,
    journal: Option<&mut Journal>,
    interrupted: &AtomicBool,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<Labels> {
    let shape = model.decoder.config();
    let filler = FillerSource::new(&config.filler, config.seed, &model.tokenizer, model.eos_id(), shape.vocab_size)?;
    let mut labels = Labels::default();
    let mut jobs = Vec::new();
    for trace in traces {
        if config.leaves_out(trace) {
            labels.n_incorrect += 1;
            continue;
        }
        match Job::new(trace, config, shape, &model.tokenizer) {
            Ok(job) => jobs.push(job),
            Err(error) => labels.failures.push(Failure { trace_id: trace.trace_id.clone(), error }),
        }
    }

    let mut run = Regenerations::new(model, config, journal, interrupted, watch);
    run.controls(&mut jobs, &mut labels)?;
    let contexts = Contexts { model, config, filler: &filler };
    let plans: Vec<Plan> = jobs
        .iter()
        .enumerate()
        .filter(|(_, job)| job.unusable.is_none() || (config.include_unusable && job.reference().is_some()))
        .flat_map(|(i, job)| {
            let (contexts, jobs) = (&contexts, &jobs);
            let grid = job.grid(config).into_iter().enumerate();
            grid.map(move |(window, span)| contexts.plan(jobs, i, window, vec![span]))
        })
        .collect();
    let results = run.plans("windows", &contexts, &jobs, &plans)?;
    labels.noise_floor = noise_floor(&contexts, &jobs, &plans, &results, &mut run.ledger)?;
    for (plan, result) in plans.iter().zip(&results) {
        let job = &mut jobs[plan.job];
        labels.timings.push(timing(job.trace, Some(plan.window), result, config));
        if result.finish == Finish::NotANumber {
            job.unusable = Some(Unusable::NotANumber);
        }
        labels.windows.push(window_row(job, plan, result, config));
    }
    if config.refine {
        labels.refined = refine(&mut run, &contexts, &jobs, &plans, &labels.windows)?;
    }
    if config.pairs > 0 {
        labels.pairs = pairs(&mut run, &contexts, &jobs, &plans, &labels.windows)?;
    }
    labels.ledger = run.ledger;
    let mut spans: Vec<Vec<(Range<usize>, Option<bool>)>> = vec![Vec::new(); jobs.len()];
    for (plan, row) in plans.into_iter().zip(&labels.windows) {
        spans[plan.job].extend(plan.spans.into_iter().map(|span| (span, row.flipped)));
    }
    for (job, spans) in jobs.iter().zip(&spans) {
        finish_trace(job, spans, &mut labels);
    }
    Ok(labels)
}

/// Repeats some windows: with nothing withheld but otherwise alike, and as they were but from a fresh pass.
fn noise_floor(
    contexts: &Contexts<'_>,
    jobs: &[Job<'_>],
    plans: &[Plan],
    results: &[Regenerated],
    ledger: &mut Ledger,
) -> Result<NoiseFloor> {
    let Contexts { model, config, .. } = contexts;
    let sample = sample(plans.len(), config.noise_floor);
    let identity = sample.iter().map(|&i| {
        let Plan { job, spans, .. } = &plans[i];
        let tokens = jobs[*job].context.clone();
        let n = spans[0].start.min(tokens.len() - 1);
        let prefix =
            (n > 0).then(|| Ok::<_, epikv_model::Error>((read_prefix(model, &tokens[..n])?, n))).transpose()?;
        let (draft, scored, max_new) = ([].into(), Scored::Nothing, config.max_new);
        Ok(Context { tokens, prefix, hidden: None, draft, scored, max_new })
    });
    let repeated = sample.iter().map(|&i| {
        let again = contexts.context(jobs, &plans[i], None)?;
        Ok(Context { draft: [].into(), scored: Scored::Nothing, ..again })
    });
    let controls: Vec<_> = sample.iter().map(|&i| jobs[plans[i].job].control.as_ref()).collect();
    let firsts: Vec<_> = sample.iter().map(|&i| Some(&results[i])).collect();
    Ok(NoiseFloor {
        n_windows: sample.len(),
        n_identity_changed: count_changed(model, identity, &controls, config, ledger)?,
        n_repeated_changed: count_changed(model, repeated, &firsts, config, ledger)?,
    })
}
