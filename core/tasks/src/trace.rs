//! From prompt and generated tokens to a row of the traces file.
//!
//! The answer is looked for in this order:
//!
//! 1. in the answer's text, by the grader's rules: its last box, a marked phrase, the last formula or number;
//! 2. as the last box anywhere in the generated text, since some models box their answer inside the reasoning and write
//!    nothing after it.
//!
//! So where a closing tag says where the answer begins, a number in the prose behind it comes before a box in the
//! reasoning. Where no tag does, the last box of the whole text comes before any number, wherever that stands. A text that
//! was cut off has an answer only if it is boxed: the last number of half a derivation is none.

use std::borrow::Cow;
use std::ops::Range;

use epikv_grader::{Mode, boxed, compare, extract};
use epikv_model::session::Finish;
use epikv_model::tokenizer::Tokenizer;
use epikv_schemas::Trace;

use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::span::{BoundaryKind, Split, Tags, find_spans_by};

/// Verdict of a trace without an answer.
pub const NO_ANSWER: &str = "no_answer";
/// Verdict of a trace whose problem has no known answer.
pub const NO_GOLD: &str = "no_gold";

epikv_words::words! {
    /// Why a generation ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FinishReason {
        /// The model wrote an end-of-sequence token.
        Eos = "eos",
        /// The limit of new tokens was reached.
        Length = "length",
        /// The model's context was full.
        Context = "context",
        /// The trace was not generated here.
        Imported = "imported",
    }
}

impl FinishReason {
    /// Why a generation of ours ended; `None` where its logits were not numbers.
    pub fn of(finish: Finish) -> Option<Self> {
        match finish {
            Finish::Eos | Finish::Stopped => Some(Self::Eos),
            Finish::Length => Some(Self::Length),
            Finish::Context => Some(Self::Context),
            Finish::NotANumber => None,
        }
    }

    /// True if the model was stopped before it was done.
    pub fn is_cut(self) -> bool {
        matches!(self, Self::Length | Self::Context)
    }
}

/// How the tokens were chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Which of several samples of the problem, from 0.
    pub sample: u32,
    /// Seed of the run; `None` where it is not known.
    pub seed: Option<u64>,
    /// Temperature; 0 is greedy.
    pub temperature: Option<f32>,
    /// Nucleus; 1 is everything.
    pub top_p: Option<f32>,
}

impl Default for Sampling {
    /// One greedy sample.
    fn default() -> Self {
        Self { sample: 0, seed: Some(0), temperature: Some(0.0), top_p: Some(1.0) }
    }
}

/// What a model wrote for a problem.
#[derive(Debug, Clone, Copy)]
pub struct Generation<'a> {
    /// Text of the prompt, where it is known.
    pub prompt: Option<&'a str>,
    /// Prompt and generated tokens.
    pub token_ids: &'a [u32],
    /// How many of them are the prompt.
    pub n_prompt: usize,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// How the tokens were chosen.
    pub sampling: Sampling,
}

/// A row of the traces file: text, spans, answer and whether it is right.
///
/// # Errors
/// If the prompt is longer than the trace, or a count does not fit the file's columns.
pub fn build_trace(
    trace_id: String,
    problem: &Problem,
    generation: &Generation<'_>,
    tokenizer: &Tokenizer,
) -> Result<Trace> {
    build_trace_by(trace_id, problem, generation, tokenizer, None)
}

/// As [`build_trace`], with think tags that the caller names.
///
/// # Errors
/// As there.
pub fn build_trace_by(
    trace_id: String,
    problem: &Problem,
    generation: &Generation<'_>,
    tokenizer: &Tokenizer,
    tags: Option<&Tags>,
) -> Result<Trace> {
    let split = find_spans_by(tokenizer, generation.token_ids, generation.n_prompt, tags)?;
    let spans = split.spans;
    let text = split.text();
    let answer = find_answer(&split, &text, generation.finish_reason);
    let (verdict, correct) = grade(answer.as_deref(), problem.gold.as_deref());
    let sampling = generation.sampling;
    Ok(Trace {
        trace_id,
        dataset: problem.dataset.clone(),
        problem_id: problem.id.clone(),
        split: None,
        problem: problem.problem.clone(),
        prompt: generation.prompt.map(str::to_owned),
        n_prompt: column("n_prompt", spans.n_prompt)?,
        n_reason: column("n_reason", spans.reasoning().len())?,
        n_answer: column("n_answer", spans.answer().len())?,
        reason_start: column("reason_start", spans.reason_start)?,
        boundary: column("boundary", spans.boundary)?,
        boundary_kind: spans.kind.name().to_owned(),
        n_think_end: column("n_think_end", spans.n_think_end)?,
        token_ids: generation.token_ids.iter().map(|id| column("token_ids", *id as usize)).collect::<Result<_>>()?,
        text,
        answer,
        gold: problem.gold.clone(),
        correct,
        verdict: verdict.to_owned(),
        finish_reason: generation.finish_reason.name().to_owned(),
        sample: column("sample", sampling.sample as usize)?,
        seed: sampling.seed.map(seed).transpose()?,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        gold_spans: gold_spans(problem, generation, &spans.reasoning(), tokenizer)?,
        model: None,
    })
}

fn seed(seed: u64) -> Result<i64> {
    i64::try_from(seed).map_err(|_| Error::TooLarge { what: "seed", got: seed })
}

/// Where the reasoning mentions what the answer needs, as pairs of positions in ascending order.
///
/// Null where the problem does not say what is needed, and where the reasoning lacks some of it.
fn gold_spans(
    problem: &Problem,
    generation: &Generation<'_>,
    reasoning: &Range<usize>,
    tokenizer: &Tokenizer,
) -> Result<Option<Vec<i32>>> {
    let Some(needed) = &problem.gold_spans else { return Ok(None) };
    let mut starts = Vec::new();
    for value in needed {
        let ids = tokenizer.encode(&value.text, false)?;
        let places = generation.token_ids[reasoning.clone()].windows(ids.len().max(1)).enumerate();
        let found: Vec<_> = places.filter(|(_, place)| *place == ids).map(|(at, _)| reasoning.start + at).collect();
        if found.is_empty() {
            return Ok(None);
        }
        starts.extend(found.into_iter().map(|start| start..start + ids.len()));
    }
    starts.sort_unstable_by_key(|span| (span.start, span.end));
    starts.dedup();
    starts
        .into_iter()
        .flat_map(|span| [span.start, span.end])
        .map(|p| column("gold_spans", p))
        .collect::<Result<_>>()
        .map(Some)
}

fn find_answer(split: &Split, text: &str, finish: FinishReason) -> Option<String> {
    let found = |text: &str| {
        if finish.is_cut() {
            boxed(text).map(Cow::into_owned)
        } else {
            extract(text, Mode::Lenient).map(|found| found.answer.into_owned())
        }
    };
    if split.spans.kind != BoundaryKind::ThinkEnd {
        return found(text);
    }
    found(&split.answer_text()).or_else(|| boxed(text).map(Cow::into_owned))
}

/// The mode in which the grader says whether an answer is right.
pub const GRADER_MODE: Mode = Mode::Lenient;

/// Verdict and whether the answer is right; the latter is null where it cannot be said.
fn grade(answer: Option<&str>, gold: Option<&str>) -> (&'static str, Option<bool>) {
    match (answer, gold) {
        (_, None) => (NO_GOLD, None),
        (None, Some(_)) => (NO_ANSWER, Some(false)),
        (Some(answer), Some(gold)) => {
            let verdict = compare(answer, gold, GRADER_MODE).verdict;
            let correct = match verdict {
                epikv_grader::Verdict::Unsure(_) => None,
                decided => Some(decided.is_same()),
            };
            (verdict.name(), correct)
        }
    }
}

fn column(what: &'static str, value: usize) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::TooLarge { what, got: value as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(generated: &str, finish_reason: FinishReason, gold: Option<&str>) -> Trace {
        let tokenizer = Tokenizer::builtin_bytes().unwrap();
        let mut token_ids = tokenizer.encode("<s>2+2?", false).unwrap();
        let n_prompt = token_ids.len();
        token_ids.extend(tokenizer.encode(generated, false).unwrap());
        let problem = Problem {
            id: "p".to_owned(),
            dataset: "set".to_owned(),
            problem: "2+2?".to_owned(),
            gold: gold.map(str::to_owned),
            level: None,
            subject: None,
            gold_spans: None,
        };
        let sampling = Sampling::default();
        let generation = Generation { prompt: None, token_ids: &token_ids, n_prompt, finish_reason, sampling };
        build_trace("set/p".to_owned(), &problem, &generation, &tokenizer).unwrap()
    }

    fn graded(generated: &str, finish_reason: FinishReason) -> (Option<String>, String, Option<bool>) {
        let trace = trace(generated, finish_reason, Some("4"));
        (trace.answer, trace.verdict, trace.correct)
    }

    #[test]
    fn counts_and_text() {
        let trace = trace(r"<think>So.</think>\boxed{4}</s>", FinishReason::Eos, Some("4"));
        assert_eq!((trace.n_prompt, trace.reason_start, trace.boundary), (5, 6, 10));
        assert_eq!((trace.n_reason, trace.n_answer, trace.n_think_end), (4, 9, 1));
        assert_eq!((trace.text.as_str(), trace.boundary_kind.as_str()), (r"<think>So.</think>\boxed{4}", "think_end"));
        assert_eq!(trace.token_ids.len(), 20);
        assert_eq!((trace.answer.as_deref(), trace.correct), (Some("4"), Some(true)));
    }

    #[test]
    fn the_answer_is_read_after_the_tag_first() {
        let eos = FinishReason::Eos;
        assert_eq!(graded(r"\boxed{3}?</think>The answer is 4.", eos), (Some("4".into()), "same".into(), Some(true)));
        assert_eq!(graded(r"so \boxed{4}</think>", eos), (Some("4".into()), "same".into(), Some(true)));
        assert_eq!(graded(r"so \boxed{5}", eos), (Some("5".into()), "different".into(), Some(false)));
    }

    #[test]
    fn a_number_behind_the_tag_comes_before_a_box_in_the_reasoning() {
        let eos = FinishReason::Eos;
        assert_eq!(graded(r"\boxed{3}</think>It is 4.", eos).0.as_deref(), Some("4"));
        assert_eq!(graded(r"\boxed{4}</think>I put it in \boxed{}, I hope.", eos).0.as_deref(), Some("4"));
        assert_eq!(graded(r"So \boxed{4}. I checked it 3 times.", eos).0.as_deref(), Some("4"));
        assert_eq!(graded(r"So \boxed{1}, \boxed{2}.", eos).0.as_deref(), Some("1, 2"));
    }

    #[test]
    fn a_cut_text_answers_only_in_a_box() {
        assert_eq!(graded("so 2 and 2 is 4", FinishReason::Eos).0, Some("4".to_owned()));
        assert_eq!(graded("so 2 and 2 is 4", FinishReason::Length), (None, "no_answer".into(), Some(false)));
        assert_eq!(graded(r"so \boxed{4} and", FinishReason::Context).0, Some("4".to_owned()));
    }

    #[test]
    fn without_gold_nothing_is_right_or_wrong() {
        let trace = trace(r"\boxed{4}", FinishReason::Eos, None);
        assert_eq!((trace.verdict.as_str(), trace.correct), (NO_GOLD, None));
    }
}
