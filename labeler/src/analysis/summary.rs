//! Summary of a labelling run.

use std::collections::BTreeMap;

use epikv_schemas::{LabelWindow, Trace};
use epikv_stats::moments::mean;
use serde::Serialize;

use crate::analysis::known::Known;
use crate::analysis::position::Position;
use crate::run::labels::Labels;
use crate::run::noise::NoiseFloor;
use crate::windows::compared::Mapping;
use crate::windows::outcome::Outcome;
use crate::windows::token_labels::{important_share, token_labels};

/// Counts and shares of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Traces with a control.
    pub n_traces: usize,
    /// Those whose labels mean something.
    pub n_usable: usize,
    /// Traces left out because their own answer is wrong.
    pub n_incorrect: usize,
    /// Traces that could not be labelled.
    pub n_failed: usize,
    /// Traces whose labels mean nothing, by the reason.
    pub unusable: BTreeMap<String, usize>,
    /// Windows of usable traces by outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Windows of usable traces.
    pub n_windows: usize,
    /// Mean over usable traces of the share of important reasoning tokens, under each mapping of outcomes to flips.
    pub important_share: BTreeMap<&'static str, Option<f64>>,
    /// How often an answer changes although nothing changed.
    pub noise_floor: NoiseFloor,
    /// Where the important tokens stand.
    pub position: Position,
    /// How well the labels recover what the answers are known to need; `None` where no usable trace says what that is.
    pub known: Option<Known>,
}

/// Outcome to flip; `None` where it decides nothing.
pub(crate) type FlipOf = fn(Outcome) -> Option<bool>;

/// Mappings that the summary prints side by side, so that a reader sees how much depends on the choice.
pub(crate) const MAPPINGS: &[(&str, FlipOf)] = &[
    ("changed_or_no_answer", |outcome| outcome.flipped(Mapping::Control)),
    ("changed_only", |outcome| match outcome {
        Outcome::Same | Outcome::SameValueOtherForm => Some(false),
        Outcome::Changed => Some(true),
        Outcome::NoAnswer | Outcome::Truncated | Outcome::Unsure => None,
    }),
    ("truncated_flips", |outcome| outcome.flipped(Mapping::Paper)),
    ("other_form_flips", |outcome| match outcome {
        Outcome::Same => Some(false),
        Outcome::SameValueOtherForm | Outcome::Changed | Outcome::NoAnswer => Some(true),
        Outcome::Truncated | Outcome::Unsure => None,
    }),
];

/// Whether a window flips under a mapping; a word that is no outcome decides nothing.
pub(crate) fn flip_of(window: &LabelWindow, flip: FlipOf) -> Option<bool> {
    Outcome::from_name(&window.outcome).and_then(flip)
}

impl Summary {
    /// Summarises a run over `traces`.
    pub fn of(labels: &Labels, traces: &[Trace]) -> Self {
        let usable: Vec<_> = labels.traces.iter().filter(|t| t.usable).collect();
        let mut unusable = BTreeMap::new();
        for reason in labels.traces.iter().filter_map(|t| t.reason_unusable.clone()) {
            *unusable.entry(reason).or_default() += 1;
        }
        let mut by_trace: BTreeMap<&str, Vec<_>> = usable.iter().map(|t| (t.trace_id.as_str(), Vec::new())).collect();
        let mut outcomes = BTreeMap::new();
        for window in &labels.windows {
            if let Some(windows) = by_trace.get_mut(window.trace_id.as_str()) {
                windows.push(window);
                *outcomes.entry(window.outcome.clone()).or_default() += 1;
            }
        }
        let share = |flip: FlipOf| {
            let shares: Vec<f64> = by_trace
                .values()
                .filter_map(|windows| {
                    let end = windows.iter().map(|w| w.end as usize).max()?;
                    let spans: Vec<_> =
                        windows.iter().map(|w| (w.start as usize..w.end as usize, flip_of(w, flip))).collect();
                    important_share(&token_labels(end, &spans))
                })
                .collect();
            mean(&shares)
        };
        Self {
            n_traces: labels.traces.len(),
            n_usable: usable.len(),
            n_incorrect: labels.n_incorrect,
            n_failed: labels.failures.len(),
            unusable,
            n_windows: outcomes.values().sum(),
            outcomes,
            noise_floor: labels.noise_floor,
            position: Position::of(&labels.tokens, &labels.traces),
            known: Known::of(&labels.windows, &labels.traces, traces),
            important_share: MAPPINGS.iter().map(|(name, flip)| (*name, share(*flip))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_decide_each_outcome_and_nothing_else() {
        let of = |word: &str| -> Vec<Option<bool>> {
            MAPPINGS.iter().map(|(_, flip)| Outcome::from_name(word).and_then(flip)).collect()
        };
        let (t, f, n) = (Some(true), Some(false), None);
        assert_eq!(of("same"), [f, f, f, f]);
        assert_eq!(of("same_value_other_form"), [f, f, f, t]);
        assert_eq!(of("changed"), [t, t, t, t]);
        assert_eq!(of("no_answer"), [t, n, t, t]);
        assert_eq!(of("truncated"), [n, n, t, n]);
        assert_eq!(of("unsure"), [n, n, n, n]);
        assert_eq!(of("errored"), [n, n, n, n], "an unknown word is no flip");
    }
}
