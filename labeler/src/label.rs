//! Labels of many traces: controls first, then the windows of every trace whose control can be used.

use std::ops::Range;
use std::sync::Arc;

use epikv_model::Model;
use epikv_model::sampler::stream_number;
use epikv_model::session::{Finish, Ledger};
use epikv_schemas::{LabelTiming, LabelToken, LabelTrace, LabelWindow, Trace};

use crate::config::{AnswerKind, Config, Mapping, Protocol};
use crate::error::{Error, Result};
use crate::filler::{FillerSource, ids_sha256};
use crate::job::{Job, Unusable};
use crate::journal::Journal;
use crate::noise::{NoiseFloor, count_changed, sample};
use crate::outcome::{GRADER_MODE, Outcome, answer_in};
use crate::regenerate::{Context, Regenerated, read_prefix, regenerate};
use crate::token_labels::{important_share, token_labels};
use crate::window::windows;

/// What a run gives.
#[derive(Debug, Default)]
pub struct Labels {
    /// One row a window.
    pub windows: Vec<LabelWindow>,
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

/// A window under way: which job, its number there, its span and its filler.
struct WindowPlan {
    job: usize,
    window: usize,
    span: Range<usize>,
    filler: Vec<u32>,
}

impl WindowPlan {
    /// The context of its job with the window overwritten.
    fn occluded(&self, jobs: &[Job<'_>]) -> Vec<u32> {
        let mut tokens = jobs[self.job].context.clone();
        tokens[self.span.clone()].copy_from_slice(&self.filler);
        tokens
    }
}

/// Labels traces. A trace that fails is listed; the others go on. What `journal` holds is not computed again.
///
/// # Errors
/// If the filler does not fit the model, or the model itself fails.
pub fn label(
    model: &Model,
    traces: &[Trace],
    config: &Config,
    journal: Option<&mut Journal>,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<Labels> {
    let shape = model.decoder.config();
    let filler = FillerSource::new(config.filler, config.seed, &model.tokenizer, model.eos_id(), shape.vocab_size)?;
    let mut labels = Labels::default();
    let mut jobs = Vec::new();
    for trace in traces {
        if config.leaves_out(trace) {
            labels.n_incorrect += 1;
            continue;
        }
        match Job::new(trace, config, shape) {
            Ok(job) => jobs.push(job),
            Err(error) => labels.failures.push(Failure { trace_id: trace.trace_id.clone(), error }),
        }
    }

    let stop_ids = model.stop_ids();
    let mut regenerations = Regenerations { model, config, journal, watch, ledger: Ledger::default() };
    let controls = regenerations.run(
        "controls",
        jobs.len(),
        |i| jobs[i].context.clone(),
        |i, tokens| {
            let own = || jobs[i].own_answer(&stop_ids);
            Ok(Context { tokens, prefix: None, draft: draft(config, own) })
        },
    )?;
    for (job, control) in jobs.iter_mut().zip(controls.into_iter().flatten()) {
        labels.timings.push(timing(job.trace, None, &control, config));
        let own = job.own_answer(&stop_ids);
        let own = &own[..own.len().min(control.ids.len())];
        let ended = own.last().is_some_and(|id| stop_ids.contains(id));
        let own = model.tokenizer.decode(&own[..own.len() - usize::from(ended)])?;
        job.set_control(control, &own, config.answer);
    }

    let plans: Vec<WindowPlan> = jobs
        .iter()
        .enumerate()
        .filter(|(_, job)| job.unusable.is_none() || (config.include_unusable && job.reference().is_some()))
        .flat_map(|(i, job)| {
            let number = stream_number(&job.trace.trace_id);
            let grid = windows(job.first, job.context.len(), config.window, config.stride);
            let filler = &filler;
            grid.into_iter().enumerate().map(move |(window, span)| {
                let filler = filler.ids(number, &span);
                WindowPlan { job: i, window, span, filler }
            })
        })
        .collect();
    // The plans of a trace follow one another, so one prefix at a time is enough.
    let (mut shared, mut n_shared) = (None, 0);
    let results = regenerations.run(
        "windows",
        plans.len(),
        |i| plans[i].occluded(&jobs),
        |i, tokens| {
            let plan = &plans[i];
            let prefix = match (config.protocol, shared.take()) {
                (Protocol::Naive, _) => None,
                (Protocol::Fast, Some((job, prefix))) if job == plan.job => Some(prefix),
                (Protocol::Fast, _) => {
                    let original = &jobs[plan.job].context;
                    n_shared += original.len();
                    Some(read_prefix(model, original)?)
                }
            };
            shared = prefix.clone().map(|prefix| (plan.job, prefix));
            let control = || jobs[plan.job].control.as_ref().map(|control| control.ids.clone()).unwrap_or_default();
            Ok(Context {
                tokens,
                prefix: prefix.map(|prefix| (prefix, plan.span.start)),
                draft: draft(config, control),
            })
        },
    )?;
    labels.ledger = regenerations.ledger;
    labels.ledger.prefill += n_shared as u64;
    labels.noise_floor = noise_floor(model, config, &jobs, &plans, &results, &mut labels.ledger)?;
    let mut spans: Vec<Vec<(Range<usize>, Option<bool>)>> = vec![Vec::new(); jobs.len()];
    for (plan, result) in plans.into_iter().zip(results.into_iter().flatten()) {
        let job = &mut jobs[plan.job];
        labels.timings.push(timing(job.trace, Some(plan.window), &result, config));
        if result.finish == Finish::NotANumber {
            job.unusable = Some(Unusable::NotANumber);
        }
        let row = window_row(job, &plan, &result, config);
        spans[plan.job].push((plan.span, row.flipped));
        labels.windows.push(row);
    }
    for (job, spans) in jobs.iter().zip(&spans) {
        finish_trace(job, spans, &mut labels);
    }
    Ok(labels)
}

/// Regenerations of one run, by what is known of them already.
struct Regenerations<'a> {
    model: &'a Model,
    config: &'a Config,
    journal: Option<&'a mut Journal>,
    watch: &'a mut (dyn FnMut(Progress) + Send),
    ledger: Ledger,
}

impl Regenerations<'_> {
    /// Regenerates `n` answers: those that the journal does not hold, in order.
    fn run(
        &mut self,
        phase: &'static str,
        n: usize,
        tokens: impl Fn(usize) -> Vec<u32> + Sync,
        mut context: impl FnMut(usize, Vec<u32>) -> epikv_model::Result<Context> + Send,
    ) -> Result<Vec<Option<Regenerated>>> {
        let Self { model, config, journal, watch, ledger } = self;
        watch(Progress::Planned { phase, total: n });
        let mut results: Vec<Option<Regenerated>> = vec![None; n];
        if let Some(journal) = journal.as_deref().filter(|journal| !journal.is_empty()) {
            for (i, result) in results.iter_mut().enumerate() {
                *result = journal.find(&ids_sha256(&tokens(i)), model)?;
                if result.is_some() {
                    watch(Progress::Done);
                }
            }
        }
        let missing: Vec<usize> = (0..n).filter(|i| results[*i].is_none()).collect();
        let contexts = missing.iter().map(|&i| Ok((i, context(i, tokens(i))?)));
        let digest = |i: usize| ids_sha256(&tokens(i));
        *ledger += regenerate(model, missing.len(), contexts, config, |i, result| {
            if let Some(journal) = journal {
                journal.add(digest(i), &result)?;
            }
            results[i] = Some(result);
            watch(Progress::Done);
            Ok(())
        })?;
        Ok(results)
    }
}

/// Repeats some windows: with their own tokens behind what is shared, and as they were but from a fresh pass.
fn noise_floor(
    model: &Model,
    config: &Config,
    jobs: &[Job<'_>],
    plans: &[WindowPlan],
    results: &[Option<Regenerated>],
    ledger: &mut Ledger,
) -> Result<NoiseFloor> {
    let sample = sample(plans.len(), config.noise_floor);
    let plain = |tokens: Vec<u32>| Context { tokens, prefix: None, draft: [].into() };
    let identity = sample.iter().map(|&i| {
        let WindowPlan { job, span, .. } = &plans[i];
        let tokens = jobs[*job].context.clone();
        let prefix = Some((read_prefix(model, &tokens[..span.start.max(1)])?, span.start.min(tokens.len() - 1)));
        Ok(Context { prefix, ..plain(tokens) })
    });
    let repeated = sample.iter().map(|&i| Ok(plain(plans[i].occluded(jobs))));
    let controls: Vec<_> = sample.iter().map(|&i| jobs[plans[i].job].control.as_ref()).collect();
    let firsts: Vec<_> = sample.iter().map(|&i| results[i].as_ref()).collect();
    Ok(NoiseFloor {
        n_windows: sample.len(),
        n_identity_changed: count_changed(model, identity, &controls, config, ledger)?,
        n_repeated_changed: count_changed(model, repeated, &firsts, config, ledger)?,
    })
}

/// What a protocol reads ahead.
fn draft<T: Into<Arc<[u32]>>>(config: &Config, likely: impl FnOnce() -> T) -> Arc<[u32]> {
    match config.protocol {
        Protocol::Naive => [].into(),
        Protocol::Fast => likely().into(),
    }
}

fn window_row(job: &Job<'_>, plan: &WindowPlan, result: &Regenerated, config: &Config) -> LabelWindow {
    let cut = result.is_cut();
    let answer = answer_in(&result.text, cut, config.answer);
    let reference = match config.mapping {
        Mapping::Control => job.reference(),
        Mapping::Paper if config.answer == AnswerKind::Text => job.reference(),
        Mapping::Paper => job.trace.gold.as_deref().or(job.reference()),
    };
    let outcome = Outcome::of(answer.as_deref(), reference.unwrap_or_default(), cut, config.answer, GRADER_MODE);
    LabelWindow {
        trace_id: job.trace.trace_id.clone(),
        window: plan.window as i32,
        start: plan.span.start as i32,
        end: plan.span.end as i32,
        filler: config.filler.to_string(),
        filler_ids_sha: ids_sha256(&plan.filler),
        answer,
        outcome: outcome.name().to_owned(),
        flipped: outcome.flipped(config.mapping),
        n_new: result.ids.len() as i32,
        hit_limit: cut,
        min_margin: result.min_margin,
        answer_text: result.text.clone(),
    }
}

/// Adds the token rows and the trace row of a job.
fn finish_trace(job: &Job<'_>, spans: &[(Range<usize>, Option<bool>)], labels: &mut Labels) {
    let trace = job.trace;
    let per_token = token_labels(trace.token_ids.len(), spans);
    let reasoning = job.first..job.context.len();
    if !spans.is_empty() {
        labels.tokens.extend(per_token.iter().enumerate().map(|(pos, label)| LabelToken {
            trace_id: trace.trace_id.clone(),
            pos: pos as i32,
            token_id: trace.token_ids[pos],
            region: job.region(pos).to_owned(),
            tested: reasoning.contains(&pos),
            important: label.important,
            n_cover: label.n_cover as i16,
            n_flip: label.n_flip as i16,
        }));
    }
    let Some(control) = &job.control else { return };
    labels.traces.push(LabelTrace {
        trace_id: trace.trace_id.clone(),
        dataset: trace.dataset.clone(),
        problem_id: trace.problem_id.clone(),
        gold: trace.gold.clone(),
        original_answer: trace.answer.clone(),
        control_answer: job.control_answer.clone(),
        control_outcome: job.control_outcome.name().to_owned(),
        usable: job.unusable.is_none(),
        reason_unusable: job.unusable.map(|u| u.name().to_owned()),
        n_windows: spans.len() as i32,
        n_flipped: spans.iter().filter(|(_, f)| *f == Some(true)).count() as i32,
        n_undefined: spans.iter().filter(|(_, f)| f.is_none()).count() as i32,
        n_reason: reasoning.len() as i32,
        important_share: important_share(&per_token[reasoning]),
        boundary_kind: trace.boundary_kind.clone(),
        control_text: control.text.clone(),
        control_n_new: control.ids.len() as i32,
    });
}

fn timing(trace: &Trace, window: Option<usize>, result: &Regenerated, config: &Config) -> LabelTiming {
    LabelTiming {
        trace_id: trace.trace_id.clone(),
        window: window.map(|w| w as i32),
        wall_s: result.wall_s,
        n_forwarded: result.n_forwarded as i64,
        n_decoded: result.ids.len() as i64,
        batch: config.batch as i32,
        threads: config.threads as i32,
    }
}
