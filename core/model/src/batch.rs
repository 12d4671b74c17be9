//! Packed rows: the tokens of several sequences one after another, without padding.

use crate::cache::{Pos, RowCache};
use crate::config::ModelConfig;
use crate::error::{Error, Result};

/// Which new tokens of a row need logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogitsOf {
    /// None: the row is still reading its prompt.
    None,
    /// The last one.
    Last,
    /// The last `n`, as for verifying a draft.
    LastN(usize),
}

/// New tokens of one sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowInput {
    /// Token ids, at least one.
    pub tokens: Vec<u32>,
    /// Position of the first; the others follow. Must be after everything in the row's cache.
    pub first: Pos,
    /// Rotary positions; where none are given they are those of the cache's [`Rotation`](crate::cache::Rotation).
    pub rope: Option<Vec<u32>>,
    /// Which logits are wanted.
    pub logits: LogitsOf,
}

impl RowInput {
    /// Tokens that continue a cache without a gap, rotated as the cache says.
    pub fn next(cache: &RowCache, tokens: Vec<u32>, logits: LogitsOf) -> Self {
        let first = Pos(cache.last().map_or(0, |p| p.0 + 1));
        Self { tokens, first, rope: None, logits }
    }

    /// Positions of the tokens.
    pub(crate) fn positions(&self) -> Vec<Pos> {
        (0..self.tokens.len() as u32).map(|i| Pos(self.first.0 + i)).collect()
    }

    /// Number of logit rows wanted.
    pub(crate) fn n_logits(&self) -> usize {
        match self.logits {
            LogitsOf::None => 0,
            LogitsOf::Last => 1,
            LogitsOf::LastN(n) => n,
        }
    }

    /// Checks one row against the model, so that nothing is written into a cache before all rows are known to be good.
    pub(crate) fn check(&self, at: usize, config: &ModelConfig) -> Result<()> {
        if self.tokens.is_empty() || self.n_logits() > self.tokens.len() {
            return Err(Error::Request {
                what: "row of the batch",
                expected: "at least one token, and no more logits than tokens".to_owned(),
                got: format!("{} tokens, {} logits", self.tokens.len(), self.n_logits()),
            });
        }
        if let Some(rope) = &self.rope
            && rope.len() != self.tokens.len()
        {
            return Err(Error::Request {
                what: "rotary positions",
                expected: format!("{}, one a token", self.tokens.len()),
                got: rope.len().to_string(),
            });
        }
        if let Some((i, &id)) = self.tokens.iter().enumerate().find(|(_, id)| **id as usize >= config.vocab_size) {
            return Err(Error::TokenOutOfRange { id, at: at + i, vocab_size: config.vocab_size });
        }
        let end = self.first.0 as usize + self.tokens.len();
        if end > config.max_positions {
            return Err(Error::ContextExceeded { position: end - 1, max_positions: config.max_positions });
        }
        Ok(())
    }
}

/// First token and number of tokens of each row.
pub(crate) fn offsets(lengths: &[usize]) -> impl Iterator<Item = (usize, usize)> + '_ {
    lengths.iter().scan(0, |at, &n| {
        let first = *at;
        *at += n;
        Some((first, n))
    })
}
