//! What a run says in a few numbers.

use std::collections::BTreeMap;

use epikv_schemas::Trace;
use serde::Serialize;

use crate::known::Known;
use crate::label::Labels;
use crate::noise::NoiseFloor;
use crate::position::Position;

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
    /// Usable traces by the reason that the others are not.
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

/// Outcome to flip, by name of the mapping.
pub(crate) type FlipOf = fn(&str) -> Option<bool>;

/// Mappings that the summary prints side by side, so that a reader sees how much depends on the choice.
pub(crate) const MAPPINGS: &[(&str, FlipOf)] = &[
    ("changed_or_no_answer", |o| match o {
        "same" | "same_value_other_form" => Some(false),
        "changed" | "no_answer" => Some(true),
        _ => None,
    }),
    ("changed_only", |o| match o {
        "same" | "same_value_other_form" => Some(false),
        "changed" => Some(true),
        _ => None,
    }),
    ("truncated_flips", |o| match o {
        "same" | "same_value_other_form" => Some(false),
        "unsure" => None,
        _ => Some(true),
    }),
    ("other_form_flips", |o| match o {
        "same" => Some(false),
        "truncated" | "unsure" => None,
        _ => Some(true),
    }),
];

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
                        windows.iter().map(|w| (w.start as usize..w.end as usize, flip(&w.outcome))).collect();
                    crate::token_labels::important_share(&crate::token_labels::token_labels(end, &spans))
                })
                .collect();
            (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
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
