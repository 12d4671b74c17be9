//! One sequence in the session.

use std::time::{Duration, Instant};

use crate::batch::{LogitsOf, RowInput};
use crate::cache::RowCache;
use crate::sampler::{Choice, Sampling, choose};

/// A sequence to continue.
#[derive(Debug)]
pub struct RowSpec {
    /// The caller's name for it.
    pub key: usize,
    /// Tokens to read first, at least one; they continue what the cache holds.
    pub context: Vec<u32>,
    /// Empty, or holding what comes before the context.
    pub cache: RowCache,
    /// New tokens at most, at least one.
    pub max_new: usize,
    /// Ids that end the sequence; the ending token is kept.
    pub stop_ids: Vec<u32>,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

/// Why a sequence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// A stop id was chosen.
    Eos,
    /// `max_new` tokens were chosen.
    Length,
    /// The model's context is full.
    Context,
    /// A logit was not a number; nothing was chosen from it.
    NotANumber,
}

impl Finish {
    /// Name in the record files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eos => "eos",
            Self::Length => "length",
            Self::Context => "context",
            Self::NotANumber => "not_a_number",
        }
    }
}

/// A sequence that ended.
#[derive(Debug)]
pub struct FinishedRow {
    /// The caller's name for it.
    pub key: usize,
    /// Tokens of its context.
    pub n_context: usize,
    /// New tokens, a stop id included.
    pub generated: Vec<u32>,
    /// Logit margin of each new token.
    pub margins: Vec<f32>,
    /// Why it ended.
    pub finish: Finish,
    /// Its cache; the last new token was never fed.
    pub cache: RowCache,
    /// Time since it was added, shared with the rows beside it.
    pub wall: Duration,
}

/// A sequence under way.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) spec: RowSpec,
    /// Context tokens already fed.
    pub(super) fed: usize,
    pub(super) generated: Vec<u32>,
    pub(super) margins: Vec<f32>,
    pub(super) finish: Option<Finish>,
    started: Instant,
}

impl Row {
    pub(super) fn new(spec: RowSpec) -> Self {
        Self { spec, fed: 0, generated: Vec::new(), margins: Vec::new(), finish: None, started: Instant::now() }
    }

    /// Context tokens still to be fed.
    pub(super) fn unread(&self) -> usize {
        self.spec.context.len() - self.fed
    }

    /// The next tokens to feed: up to `budget` of the context, or the last choice.
    pub(super) fn next_input(&self, budget: usize) -> RowInput {
        let unread = &self.spec.context[self.fed..];
        let tokens = match self.generated.last() {
            Some(&last) => vec![last],
            None => unread[..unread.len().min(budget)].to_vec(),
        };
        let logits = if tokens.len() < unread.len() { LogitsOf::None } else { LogitsOf::Last };
        RowInput::next(&self.spec.cache, tokens, logits)
    }

    /// Chooses the token at `position` from its logits and notes whether the sequence ended.
    ///
    /// `None`, and the end of the sequence, if a logit is not a number: the other rows go on.
    pub(super) fn accept(&mut self, logits: &[f32], position: usize, max_positions: usize) -> Option<Choice> {
        let Some(choice) = choose(logits, self.spec.sampling, self.generated.len()) else {
            self.finish = Some(Finish::NotANumber);
            return None;
        };
        self.generated.push(choice.token);
        self.margins.push(choice.margin);
        self.finish = if self.spec.stop_ids.contains(&choice.token) {
            Some(Finish::Eos)
        } else if self.generated.len() >= self.spec.max_new {
            Some(Finish::Length)
        } else if position + 1 >= max_positions {
            Some(Finish::Context)
        } else {
            None
        };
        Some(choice)
    }

    pub(super) fn finished(self) -> Option<FinishedRow> {
        let finish = self.finish?;
        Some(FinishedRow {
            key: self.spec.key,
            n_context: self.spec.context.len(),
            generated: self.generated,
            margins: self.margins,
            finish,
            cache: self.spec.cache,
            wall: self.started.elapsed(),
        })
    }
}
