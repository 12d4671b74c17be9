//! From regenerations to rows of the record files.

use std::ops::Range;

use epikv_schemas::{LabelTiming, LabelToken, LabelTrace, LabelWindow, Trace};

use crate::run::config::Config;
use crate::run::job::Job;
use crate::run::labels::Labels;
use crate::run::plan::Plan;
use crate::run::regenerate::Regenerated;
use crate::windows::compared::{AnswerKind, Mapping};
use crate::windows::filler::ids_sha256;
use crate::windows::outcome::{GRADER_MODE, Outcome, answer_in};
use crate::windows::published;
use crate::windows::token_labels::{important_share, token_labels};

/// How the answer of a regeneration compares with the reference: the answer, the outcome, and whether it is a flip.
pub(crate) struct Judged {
    pub(crate) answer: Option<String>,
    pub(crate) outcome: Outcome,
    pub(crate) flipped: Option<bool>,
}

/// Judges a regeneration of a job.
pub(crate) fn judge(job: &Job<'_>, result: &Regenerated, config: &Config) -> Judged {
    let cut = result.is_cut();
    if (config.mapping, config.answer) == (Mapping::Paper, AnswerKind::Math) {
        let reference = job.trace.gold.as_deref().or(job.reference()).unwrap_or_default();
        let answer = published::last_box(&result.text);
        let outcome = match answer {
            None if cut => Outcome::Truncated,
            None => Outcome::NoAnswer,
            Some(answer) if published::matches(answer, reference) => Outcome::Same,
            Some(_) => Outcome::Changed,
        };
        return Judged { answer: answer.map(str::to_owned), outcome, flipped: outcome.flipped(config.mapping) };
    }
    let answer = answer_in(&result.text, cut, config.answer);
    let reference = job.reference();
    let outcome = Outcome::of(answer.as_deref(), reference.unwrap_or_default(), cut, config.answer, GRADER_MODE);
    Judged { answer, outcome, flipped: outcome.flipped(config.mapping) }
}

/// The row of a window.
pub(crate) fn window_row(job: &Job<'_>, plan: &Plan, result: &Regenerated, config: &Config) -> LabelWindow {
    let Judged { answer, outcome, flipped } = judge(job, result, config);
    let span = &plan.spans[0];
    let of_control = job.control.as_ref().and_then(|control| control.score);
    let pair = of_control.zip(result.score).filter(|(control, own)| control.n_tokens == own.n_tokens);
    LabelWindow {
        trace_id: job.trace.trace_id.clone(),
        window: plan.window as i32,
        start: span.start as i32,
        end: span.end as i32,
        filler: config.name(),
        filler_ids_sha: ids_sha256(&plan.filler),
        answer,
        outcome: outcome.name().to_owned(),
        flipped,
        n_new: result.ids.len() as i32,
        hit_limit: result.is_cut(),
        min_margin: result.min_margin,
        answer_text: result.text.clone(),
        logprob_drop: pair.map(|(control, own)| control.log_prob - own.log_prob),
        readable_after: job.reference().map(|_| job.last_statement.is_some_and(|token| token >= span.end)),
    }
}

/// Adds the token rows and the trace row of a job.
pub(crate) fn finish_trace(job: &Job<'_>, spans: &[(Range<usize>, Option<bool>)], labels: &mut Labels) {
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
            n_cover: count(label.n_cover),
            n_flip: count(label.n_flip),
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

/// A number of windows over a token; [`Config`] refuses grids that put more over one.
pub(crate) fn count(windows: u32) -> i16 {
    i16::try_from(windows).unwrap_or(i16::MAX)
}

/// The row of a regeneration's time.
pub(crate) fn timing(trace: &Trace, window: Option<usize>, result: &Regenerated, config: &Config) -> LabelTiming {
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
