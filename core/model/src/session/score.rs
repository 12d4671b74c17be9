//! The score of a draft from a pass of its own.

use super::draft_score::DraftScore;
use super::row::Row;
use super::{Ledger, RowSpec, logits_of};
use crate::decoder::Decoder;
use crate::error::Result;
use crate::taps::ProbePlan;

/// The score that a row with this context and draft would have, from a pass of its own. Generates nothing.
pub fn score_draft(decoder: &Decoder, spec: RowSpec) -> Result<(Option<DraftScore>, Ledger)> {
    let mut row = Row::new(spec);
    let chunk = row.unread();
    let (input, n_draft) = row.next_input(chunk, decoder.config().max_positions);
    let bytes_before = decoder.bytes_to_host();
    let output = decoder.forward(std::slice::from_ref(&input), &mut [&mut row.spec.cache], &ProbePlan::default())?;
    let logits = logits_of(decoder, output.logits.as_ref())?;
    let bytes_to_host = decoder.bytes_to_host() - bytes_before;
    let ledger = Ledger { prefill: chunk as u64, draft: n_draft as u64, decode: 0, bytes_to_host };
    let logits: Vec<&[f32]> = logits.chunks_exact(decoder.config().vocab_size).collect();
    Ok((DraftScore::of(&row.spec.draft, &logits), ledger))
}
