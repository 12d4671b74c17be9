//! One sequence in the session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::draft::Draft;
use super::draft_score::DraftScore;
use crate::batch::{LogitsOf, RowInput};
use crate::cache::{Pos, RowCache};
use crate::plan::ReadPlan;
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
    /// What it will probably generate, the end included; empty if nothing is known. Changes no token.
    pub draft: Arc<[u32]>,
}

epikv_words::words! {
    /// Why a sequence ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Finish {
        /// A stop id was chosen.
        Eos = "eos",
        /// The caller's condition was met: see [`Session::until`](super::Session::until).
        Stopped = "stopped",
        /// `max_new` tokens were chosen.
        Length = "length",
        /// The model's context is full.
        Context = "context",
        /// A logit was not a number; nothing was chosen from it.
        NotANumber = "not_a_number",
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
    /// Tokens that went through the model for it, those of drafts too.
    pub n_forwarded: usize,
    /// Its cache; the last new token was never fed.
    pub cache: RowCache,
    /// How likely its draft was after its context; `None` without a draft.
    pub draft_score: Option<DraftScore>,
    /// Time since it was added, shared with the rows beside it.
    pub wall: Duration,
}

/// A condition on a row: its key, and its new tokens so far.
pub type Until<'a> = &'a (dyn Fn(usize, &[u32]) -> bool + Sync);

/// What ends a row besides its own tokens and their number.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    /// Tokens of the model's context.
    pub(super) max_positions: usize,
    pub(super) until: Option<Until<'a>>,
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
    /// What the next pass reads.
    pub(super) read: ReadPlan,
    draft: Draft,
    draft_score: Option<DraftScore>,
    n_forwarded: usize,
    started: Instant,
}

impl Row {
    pub(super) fn new(spec: RowSpec) -> Self {
        Self {
            draft: Draft::new(spec.draft.clone()),
            spec,
            fed: 0,
            generated: Vec::new(),
            margins: Vec::new(),
            finish: None,
            read: ReadPlan::All,
            draft_score: None,
            n_forwarded: 0,
            started: Instant::now(),
        }
    }

    /// Context tokens still to be fed.
    pub(super) fn unread(&self) -> usize {
        self.spec.context.len() - self.fed
    }

    /// The next tokens to feed, and how many of them, at the end, are of the draft: `chunk` tokens of the context or the last
    /// choice, and a draft behind the last of these.
    pub(super) fn next_input(&self, chunk: usize, max_positions: usize) -> (RowInput, usize) {
        let unread = &self.spec.context[self.fed..];
        let mut tokens = match self.generated.last() {
            Some(&last) => vec![last],
            None => unread[..chunk].to_vec(),
        };
        if tokens.len() < unread.len() {
            return (RowInput::next(&self.spec.cache, tokens, LogitsOf::None), 0);
        }
        // A draft of `k` tokens leads to `k + 1` choices.
        let first = self.spec.cache.last().map_or(0, |pos| pos.0 as usize + 1);
        let positions = max_positions.saturating_sub(first + tokens.len());
        let draft = self.draft.ahead(positions.min(self.spec.max_new - self.generated.len() - 1));
        tokens.extend(draft);
        (RowInput::next(&self.spec.cache, tokens, LogitsOf::LastN(draft.len() + 1)), draft.len())
    }

    /// Takes the logits of a pass: chooses tokens for as long as they are those of the draft, and one more.
    pub(super) fn take(&mut self, input: &RowInput, n_draft: usize, logits: &[&[f32]], ends: Ends<'_>) -> Vec<Choice> {
        let (read, draft) = input.tokens.split_at(input.tokens.len() - n_draft);
        if self.generated.is_empty() {
            self.fed += read.len();
        }
        self.n_forwarded += input.tokens.len();
        let first = input.first.0 as usize + read.len();
        if self.generated.is_empty() && !logits.is_empty() && !self.spec.draft.is_empty() {
            self.draft_score = DraftScore::of(&self.spec.draft, logits);
        }
        let mut choices = Vec::new();
        for (i, logits) in logits.iter().enumerate() {
            let Some(choice) = self.accept(logits, first + i, ends) else { break };
            choices.push(choice);
            if self.finish.is_some() || draft.get(i) != Some(&choice.token) {
                break;
            }
        }
        if n_draft > 0 {
            // The last choice was not read yet; what was read beyond it is forgotten.
            let held = first + choices.len().saturating_sub(1);
            self.spec.cache.truncate(held.checked_sub(1).map(|pos| Pos(pos as u32)));
        }
        if !choices.is_empty() {
            self.draft.follow(&self.generated, choices.len(), n_draft);
        }
        choices
    }

    /// Chooses the token at `position` from its logits and notes whether the sequence ended.
    ///
    /// `None`, and the end of the sequence, if a logit is not a number: the other rows go on.
    fn accept(&mut self, logits: &[f32], position: usize, ends: Ends<'_>) -> Option<Choice> {
        let Some(choice) = choose(logits, self.spec.sampling, self.generated.len()) else {
            self.finish = Some(Finish::NotANumber);
            return None;
        };
        self.generated.push(choice.token);
        self.margins.push(choice.margin);
        self.finish = if self.spec.stop_ids.contains(&choice.token) {
            Some(Finish::Eos)
        } else if ends.until.is_some_and(|until| until(self.spec.key, &self.generated)) {
            Some(Finish::Stopped)
        } else if self.generated.len() >= self.spec.max_new {
            Some(Finish::Length)
        } else if position + 1 >= ends.max_positions {
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
            n_forwarded: self.n_forwarded,
            draft_score: self.draft_score,
            cache: self.spec.cache,
            wall: self.started.elapsed(),
        })
    }
}
