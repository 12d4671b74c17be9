//! A trace prepared for replay.

use std::collections::BTreeSet;

use epikv_model::config::ModelConfig;
use epikv_schemas::{Trace, TraceError};

use crate::policy::budget::Lengths;

/// A trace that can be replayed.
pub(crate) struct Recording<'t> {
    pub(super) trace: &'t Trace,
    /// Tokens up to the answer.
    pub(super) tokens: Vec<u32>,
    pub(super) n_prompt: usize,
    /// Positions of important tokens; `None` where nothing was labelled.
    pub(super) important: Option<BTreeSet<u32>>,
}

impl<'t> Recording<'t> {
    pub(super) fn of(
        trace: &'t Trace,
        important: Option<BTreeSet<u32>>,
        model: &ModelConfig,
    ) -> std::result::Result<Self, TraceError> {
        let checked = trace.checked()?;
        let (n_prompt, boundary) = (checked.n_prompt, checked.boundary);
        // The last token is fed when the answer is decoded.
        if n_prompt == 0 || boundary < n_prompt + 2 {
            let expected = "a prompt and at least two tokens of reasoning before it";
            return Err(checked.broken("boundary", expected, format!("{boundary} after a prompt of {n_prompt}")));
        }
        checked.check_model(boundary + 1, model.vocab_size, model.max_positions)?;
        let mut tokens = checked.token_ids;
        tokens.truncate(boundary);
        Ok(Self { trace, tokens, n_prompt, important })
    }

    /// Tokens that are fed before the answer is decoded: all but the last.
    pub(super) fn fed(&self) -> &[u32] {
        &self.tokens[..self.tokens.len() - 1]
    }

    /// What a budget refers to: the generation is that of the trace.
    pub(super) fn lengths(&self) -> Lengths {
        let n_generated = self.trace.token_ids.len() - self.n_prompt;
        Lengths { n_prompt: self.n_prompt, n_generated: Some(n_generated) }
    }
}
