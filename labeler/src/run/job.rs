//! One trace to label: its checked context, its control, and why it may be unusable.

use std::ops::Range;

use epikv_grader::Mode;
use epikv_model::config::ModelConfig;
use epikv_model::session::Finish;
use epikv_model::tokenizer::{TokenText, Tokenizer};
use epikv_schemas::Trace;
use epikv_tasks::prompt::THINK_END;

use crate::error::Result;
use crate::run::config::Config;
use crate::run::regenerate::Regenerated;
use crate::windows::compared::AnswerKind;
use crate::windows::outcome::{Outcome, answer_in};
use crate::windows::spans::{By, spans};
use crate::windows::window::windows;

/// Why the labels of a trace mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The control is not the right answer: every window would seem to flip.
    Control(Outcome),
    /// There is neither gold nor an answer of the trace's own to judge the control by.
    NoReference,
    /// Nothing between prompt and answer.
    NoReasoning,
    /// The model's logits were not numbers.
    NotANumber,
}

impl Unusable {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Control(Outcome::NoAnswer) => "control_no_answer",
            Self::Control(Outcome::Truncated) => "control_truncated",
            Self::Control(Outcome::Unsure) => "control_unsure",
            Self::Control(_) => "control_changed",
            Self::NoReference => "no_reference",
            Self::NoReasoning => "no_reasoning",
            Self::NotANumber => "not_a_number",
        }
    }
}

/// A trace under way.
#[derive(Debug)]
pub(crate) struct Job<'t> {
    pub(crate) trace: &'t Trace,
    /// Tokens up to the answer boundary.
    pub(crate) context: Vec<u32>,
    /// Where the grid starts.
    pub(crate) first: usize,
    /// Text of the tokens from there to the boundary.
    pub(crate) text: TokenText,
    /// The closing tag and what follows it up to the boundary; empty where the boundary was found otherwise.
    pub(crate) closing: Range<usize>,
    pub(crate) control: Option<Regenerated>,
    pub(crate) control_answer: Option<String>,
    /// The last reasoning token at which the reference answer begins, standing by itself.
    pub(crate) last_statement: Option<usize>,
    pub(crate) control_outcome: Outcome,
    pub(crate) unusable: Option<Unusable>,
}

impl<'t> Job<'t> {
    /// Checks a trace against itself and the model.
    pub(crate) fn new(trace: &'t Trace, config: &Config, model: &ModelConfig, tokenizer: &Tokenizer) -> Result<Self> {
        let checked = trace.checked()?;
        let (n_prompt, reason_start, boundary) = (checked.n_prompt, checked.reason_start, checked.boundary);
        if n_prompt == 0 {
            return Err(checked.broken("n_prompt", "at least one token", "none").into());
        }
        // With room for the first token of an answer.
        checked.check_model(boundary + 1, model.vocab_size, model.max_positions)?;
        let mut ids = checked.token_ids;
        ids.truncate(boundary);
        let first = if config.from_prompt_end { n_prompt } else { reason_start };
        let unusable = (first == boundary).then_some(Unusable::NoReasoning);
        let text = tokenizer.byte_offsets(&ids[first..])?;
        let tag = last_of(&text.bytes, THINK_END.as_bytes()).map(|at| first + text.token_at(at));
        let closing = tag.filter(|_| trace.boundary_kind == "think_end").unwrap_or(boundary)..boundary;
        Ok(Self {
            trace,
            context: ids,
            first,
            text,
            closing,
            control: None,
            control_answer: None,
            last_statement: None,
            control_outcome: Outcome::NoAnswer,
            unusable,
        })
    }

    /// Takes the control and judges it: against gold, or else against the trace's own answer. As text it is judged against
    /// the trace's own continuation, as far as the control went.
    pub(crate) fn set_control(&mut self, control: Regenerated, own_text: &str, kind: AnswerKind) {
        self.control_answer = answer_in(&control.text, control.is_cut(), kind);
        let judge = match kind {
            AnswerKind::Math => self.trace.gold.as_deref().or(self.trace.answer.as_deref()),
            AnswerKind::Text => Some(own_text.trim()),
        };
        match judge {
            Some(judge) => {
                let answer = self.control_answer.as_deref();
                self.control_outcome = Outcome::of(answer, judge, control.is_cut(), kind, Mode::Lenient);
                if !self.control_outcome.is_same() {
                    self.unusable = Some(Unusable::Control(self.control_outcome));
                }
            }
            None => self.unusable = Some(Unusable::NoReference),
        }
        if control.finish == Finish::NotANumber {
            self.unusable = Some(Unusable::NotANumber);
        }
        self.control = Some(control);
        self.last_statement = self.statement();
    }

    /// The trace's own tokens after the boundary, up to the first that ends it.
    pub(crate) fn own_answer(&self, stop_ids: &[u32]) -> Vec<u32> {
        let mut own: Vec<u32> = self.trace.token_ids[self.context.len()..].iter().map(|&id| id as u32).collect();
        let end = own.iter().position(|id| stop_ids.contains(id));
        own.truncate(end.map_or(own.len(), |end| end + 1));
        own
    }

    /// What the answers of windows are compared with: the control's answer.
    pub(crate) fn reference(&self) -> Option<&str> {
        self.control_answer.as_deref()
    }

    /// The spans that are withheld one after another.
    pub(crate) fn grid(&self, config: &Config) -> Vec<Range<usize>> {
        match config.by {
            By::Window => windows(self.first, self.context.len(), config.window, config.stride),
            by => spans(by, &self.text, self.first, self.context.len()),
        }
    }

    fn statement(&self) -> Option<usize> {
        let reference = self.reference()?.trim().as_bytes();
        let bytes = &self.text.bytes[..];
        let apart = |at: Option<&u8>| !at.is_some_and(u8::is_ascii_alphanumeric);
        let stands = |&at: &usize| {
            bytes[at..].starts_with(reference)
                && apart(at.checked_sub(1).map(|before| &bytes[before]))
                && apart(bytes.get(at + reference.len()))
        };
        let at = (0..bytes.len()).rev().find(stands).filter(|_| !reference.is_empty())?;
        Some(self.first + self.text.token_at(at))
    }

    /// Name of the part of the trace that a position is in.
    pub(crate) fn region(&self, pos: usize) -> &'static str {
        if pos < self.trace.n_prompt as usize {
            "prompt"
        } else if pos < self.context.len() {
            "reason"
        } else {
            "answer"
        }
    }
}

/// Where a pattern stands last.
fn last_of(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).rposition(|window| window == pattern)
}
