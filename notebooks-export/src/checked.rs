//! A trace and its windows, checked against each other.

use std::ops::Range;

use epikv_schemas::{LabelWindow, Trace};

use crate::error::{Error, Result};
use crate::outcome::{OUTCOMES, index_of};

/// A trace and its windows, known to belong together.
#[derive(Debug)]
pub(crate) struct Checked<'r> {
    pub(crate) n_tokens: usize,
    /// Prompt, reasoning and answer.
    pub(crate) parts: [Range<usize>; 3],
    /// What the answer is known to need.
    pub(crate) gold_spans: Vec<Range<usize>>,
    /// Windows in the order of [`OUTCOMES`], each list by start.
    pub(crate) by_outcome: Vec<Vec<(&'r LabelWindow, Range<usize>)>>,
}

impl<'r> Checked<'r> {
    pub(crate) fn new(trace: &Trace, windows: &'r [LabelWindow]) -> Result<Self> {
        let checked = trace.checked()?;
        let n_tokens = checked.token_ids.len();
        let parts = [0..checked.n_prompt, checked.reason_start..checked.boundary, checked.boundary..checked.answer_end];
        let span = |&LabelWindow { window, start, end, .. }: &LabelWindow| {
            let inside = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let inside = inside.filter(|&(start, end)| start <= end && end <= n_tokens);
            inside.map(|(start, end)| start..end).ok_or_else(|| Error::Window {
                trace_id: trace.trace_id.clone(),
                window,
                n_tokens,
                start,
                end,
            })
        };
        let mut by_outcome = vec![Vec::new(); OUTCOMES.len()];
        for window in windows {
            if window.trace_id != trace.trace_id {
                let (expected, got) = (trace.trace_id.clone(), window.trace_id.clone());
                return Err(Error::OtherTrace { window: window.window, expected, got });
            }
            let Some(outcome) = index_of(&window.outcome) else {
                return Err(Error::UnknownOutcome {
                    trace_id: trace.trace_id.clone(),
                    window: window.window,
                    known: OUTCOMES.map(|o| o.word).to_vec(),
                    got: window.outcome.clone(),
                });
            };
            by_outcome[outcome].push((window, span(window)?));
        }
        for list in &mut by_outcome {
            list.sort_by_key(|(window, span)| (span.start, window.window));
        }
        Ok(Self { n_tokens, parts, gold_spans: checked.gold_spans, by_outcome })
    }
}
