//! Labels of many traces: controls first, then the windows of every trace whose control can be used.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use epikv_model::Model;
use epikv_model::session::{Finish, Ledger};
use epikv_schemas::{LabelPair, LabelRefined, LabelTiming, LabelToken, LabelTrace, LabelWindow, Trace};

use crate::config::{Config, Protocol};
use crate::error::{Error, Result};
use crate::filler::{FillerSource, ids_sha256};
use crate::job::{Job, Unusable};
use crate::journal::Journal;
use crate::noise::{NoiseFloor, count_changed, sample};
use crate::pairs::pairs;
use crate::plan::{Contexts, Plan};
use crate::prefixes::Prefixes;
use crate::refine::refine;
use crate::regenerate::{Context, Regenerated, Scored, read_prefix, regenerate};
use crate::rows::{finish_trace, timing, window_row};

/// What a run gives.
#[derive(Debug, Default)]
pub struct Labels {
    /// One row a window.
    pub windows: Vec<LabelWindow>,
    /// One row a part of a window that was withheld alone, if flipping windows are refined.
    pub refined: Vec<LabelRefined>,
    /// One row a pair of windows.
    pub pairs: Vec<LabelPair>,
    /// One row a token of a labelled trace.
    pub tokens: Vec<LabelToken>,
    /// One row a trace whose control was run.
    pub traces: Vec<LabelTrace>,
    /// One row a regeneration.
    pub timings: Vec<LabelTiming>,
    /// Traces that were left out because their own answer is wrong.
    pub n_incorrect: usize,
    /// Traces that could not be labelled.
    pub failures: Vec<Failure>,
    /// How often an answer changes although nothing changed.
    pub noise_floor: NoiseFloor,
    /// Tokens that went through the model.
    pub ledger: Ledger,
}

/// A trace that could not be labelled.
#[derive(Debug)]
pub struct Failure {
    /// The trace.
    pub trace_id: String,
    /// Why.
    pub error: Error,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Regenerations of a phase that are planned.
    Planned {
        /// `controls` or `windows`.
        phase: &'static str,
        /// How many.
        total: usize,
    },
    /// One more is done.
    Done,
}

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

    let mut run = Regenerations {
        model,
        config,
        journal,
        interrupted,
        watch,
        ledger: Ledger::default(),
        prefixes: Prefixes::default(),
    };
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

/// Regenerations of one run, by what is known of them already.
pub(crate) struct Regenerations<'a> {
    model: &'a Model,
    config: &'a Config,
    journal: Option<&'a mut Journal>,
    interrupted: &'a AtomicBool,
    watch: &'a mut (dyn FnMut(Progress) + Send),
    pub(crate) ledger: Ledger,
    prefixes: Prefixes,
}

impl Regenerations<'_> {
    /// Regenerates the answer of each trace with nothing withheld.
    fn controls(&mut self, jobs: &mut [Job<'_>], labels: &mut Labels) -> Result<()> {
        let (model, config) = (self.model, self.config);
        let stop_ids = model.stop_ids();
        let (mut prefixes, mut n_shared) = (Prefixes::default(), 0);
        let controls = self.run(
            "controls",
            jobs.len(),
            |i| ids_sha256(&jobs[i].context),
            |i| {
                let (tokens, max_new) = (jobs[i].context.clone(), config.max_new);
                let (draft, prefix) = match config.protocol {
                    Protocol::Naive => ([].into(), None),
                    Protocol::Fast => {
                        let prefix = read_prefix(model, &tokens)?;
                        n_shared += tokens.len();
                        prefixes.keep(i, &prefix);
                        (jobs[i].own_answer(&stop_ids).into(), Some((prefix, tokens.len() - 1)))
                    }
                };
                Ok(Context { tokens, prefix, hidden: None, draft, scored: Scored::Itself, max_new })
            },
        )?;
        self.ledger.prefill += n_shared as u64;
        self.prefixes = prefixes;
        for (job, control) in jobs.iter_mut().zip(controls) {
            labels.timings.push(timing(job.trace, None, &control, config));
            let own = job.own_answer(&stop_ids);
            let own = &own[..own.len().min(control.ids.len())];
            let ended = own.last().is_some_and(|id| stop_ids.contains(id));
            let own = model.tokenizer.decode(&own[..own.len() - usize::from(ended)])?;
            job.set_control(control, &own, config.answer);
        }
        Ok(())
    }

    /// Regenerates the answers of plans; those of a trace follow one another.
    pub(crate) fn plans(
        &mut self,
        phase: &'static str,
        contexts: &Contexts<'_>,
        jobs: &[Job<'_>],
        plans: &[Plan],
    ) -> Result<Vec<Regenerated>> {
        let (model, config) = (self.model, self.config);
        // One prefix at a time is enough, besides those that the controls left.
        let (mut shared, mut n_shared) = (None, 0);
        let mut prefixes = std::mem::take(&mut self.prefixes);
        let results = self.run(
            phase,
            plans.len(),
            |i| contexts.digest(jobs, &plans[i]),
            |i| {
                let plan = &plans[i];
                let prefix = match (config.protocol, shared.take()) {
                    (Protocol::Naive, _) => None,
                    (Protocol::Fast, Some((job, prefix))) if job == plan.job => Some(prefix),
                    (Protocol::Fast, _) => Some(if let Some(prefix) = prefixes.take(plan.job) {
                        prefix
                    } else {
                        let original = &jobs[plan.job].context;
                        n_shared += original.len();
                        read_prefix(model, original)?
                    }),
                };
                shared = prefix.clone().map(|prefix| (plan.job, prefix));
                let context = contexts.context(jobs, plan, prefix)?;
                if config.protocol == Protocol::Naive {
                    n_shared += context.prefix.as_ref().map_or(0, |(_, n)| *n);
                }
                Ok(context)
            },
        )?;
        self.ledger.prefill += n_shared as u64;
        Ok(results)
    }

    /// Regenerates `n` answers: those that the journal does not hold under their digest, in order.
    fn run(
        &mut self,
        phase: &'static str,
        n: usize,
        digest: impl Fn(usize) -> String + Sync,
        mut context: impl FnMut(usize) -> epikv_model::Result<Context> + Send,
    ) -> Result<Vec<Regenerated>> {
        let Self { model, config, journal, interrupted, watch, ledger, .. } = self;
        watch(Progress::Planned { phase, total: n });
        let mut results: Vec<Option<Regenerated>> = vec![None; n];
        if let Some(journal) = journal.as_deref().filter(|journal| !journal.is_empty()) {
            for (i, result) in results.iter_mut().enumerate() {
                *result = journal.find(&digest(i), model)?;
                if result.is_some() {
                    watch(Progress::Done);
                }
            }
        }
        let missing: Vec<usize> = (0..n).filter(|i| results[*i].is_none()).collect();
        let contexts = missing.iter().map(|&i| Ok((i, context(i)?)));
        let contexts = contexts.take_while(|_| !interrupted.load(Ordering::Relaxed));
        *ledger += regenerate(model, missing.len(), contexts, config, |i, result| {
            if let Some(journal) = journal {
                journal.add(digest(i), &result)?;
            }
            results[i] = Some(result);
            watch(Progress::Done);
            Ok(())
        })?;
        let n_done = results.iter().flatten().count();
        let results: Option<Vec<Regenerated>> = results.into_iter().collect();
        results.ok_or(Error::Interrupted { phase, n_done, n })
    }
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
