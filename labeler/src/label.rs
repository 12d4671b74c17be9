//! Labels of many traces: controls first, then the windows of every trace whose control can be used.

use std::ops::Range;

use epikv_model::Model;
use epikv_model::sampler::stream_number;
use epikv_model::session::{Finish, Ledger};
use epikv_schemas::{LabelTiming, LabelToken, LabelTrace, LabelWindow, Trace};

use crate::config::{AnswerKind, Config, Mapping, Protocol};
use crate::error::{Error, Result};
use crate::filler::{FillerSource, ids_sha256};
use crate::job::{Job, Unusable};
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

/// Labels traces. A trace that fails is listed; the others go on.
///
/// # Errors
/// If the filler does not fit the model, or the model itself fails.
pub fn label(
    model: &Model,
    traces: &[Trace],
    config: &Config,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<Labels> {
    let shape = model.decoder.config();
    let filler = FillerSource::new(config.filler, config.seed, &model.tokenizer, model.eos_id(), shape.vocab_size)?;
    let mut labels = Labels::default();
    let mut jobs = Vec::new();
    for trace in traces {
        if trace.correct == Some(false) && config.answer == AnswerKind::Math && !config.include_unusable {
            labels.n_incorrect += 1;
            continue;
        }
        match Job::new(trace, config, shape) {
            Ok(job) => jobs.push(job),
            Err(error) => labels.failures.push(Failure { trace_id: trace.trace_id.clone(), error }),
        }
    }

    watch(Progress::Planned { phase: "controls", total: jobs.len() });
    let mut controls: Vec<Option<Regenerated>> = vec![None; jobs.len()];
    let contexts = jobs.iter().map(|job| Ok(Context { tokens: job.context.clone(), prefix: None }));
    labels.ledger += regenerate(model, contexts, config.max_new, config.batch, |i, control| {
        controls[i] = Some(control);
        watch(Progress::Done);
    })?;
    for (job, control) in jobs.iter_mut().zip(controls.into_iter().flatten()) {
        labels.timings.push(timing(job.trace, None, &control, config));
        let stop = model.stop_ids();
        let mut own = job.own_answer(control.n_new);
        own.truncate(own.iter().position(|id| stop.contains(id)).unwrap_or(own.len()));
        let own = model.tokenizer.decode(&own)?;
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
    watch(Progress::Planned { phase: "windows", total: plans.len() });
    // The plans of a trace follow one another, so one prefix at a time is enough.
    let (mut shared, mut n_shared) = (None, 0);
    let contexts = plans.iter().map(|plan| {
        let mut tokens = jobs[plan.job].context.clone();
        let prefix = match (config.protocol, shared.take()) {
            (Protocol::Naive, _) => None,
            (Protocol::Fast, Some((job, prefix))) if job == plan.job => Some(prefix),
            (Protocol::Fast, _) => {
                n_shared += tokens.len();
                Some(read_prefix(model, &tokens)?)
            }
        };
        shared = prefix.clone().map(|prefix| (plan.job, prefix));
        tokens[plan.span.clone()].copy_from_slice(&plan.filler);
        Ok(Context { tokens, prefix: prefix.map(|prefix| (prefix, plan.span.start)) })
    });
    let mut results: Vec<Option<Regenerated>> = vec![None; plans.len()];
    labels.ledger += regenerate(model, contexts, config.max_new, config.batch, |i, result| {
        results[i] = Some(result);
        watch(Progress::Done);
    })?;
    labels.ledger.prefill += n_shared as u64;
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
        n_new: result.n_new as i32,
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
        control_n_new: control.n_new as i32,
    });
}

fn timing(trace: &Trace, window: Option<usize>, result: &Regenerated, config: &Config) -> LabelTiming {
    LabelTiming {
        trace_id: trace.trace_id.clone(),
        window: window.map(|w| w as i32),
        wall_s: result.wall_s,
        n_forwarded: result.n_forwarded as i64,
        n_decoded: result.n_new as i64,
        batch: config.batch as i32,
        threads: config.threads as i32,
    }
}
