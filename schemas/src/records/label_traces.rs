//! `label_traces`: the control of each trace, whether its labels can be used, and their summary.

use super::{BOUNDARY_KINDS, OUTCOMES};

crate::record::record! {
    /// One labelled trace a row: its control (the answer regenerated with nothing occluded) and a summary of its labels.
    pub struct LabelTrace in "label_traces", version 1 0, unique by (trace_id);

    /// Name of the trace.
    trace_id: String => key(),
    /// Problem set that the problem comes from.
    dataset: String => key(),
    /// Name of the problem in its set.
    problem_id: String => key(),
    /// Right answer; null where the problem set has none.
    gold: Option<String> => text(),
    /// Answer of the trace itself; null where it has none.
    original_answer: Option<String> => text(),
    /// Answer of the control; null where it has none.
    control_answer: Option<String> => text(),
    /// How the control's answer compares with gold, or with the trace's own answer where there is no gold.
    control_outcome: String => word(OUTCOMES),
    /// Whether the labels of the trace can be used.
    usable: bool => flag(),
    /// Why the labels cannot be used; null where they can.
    reason_unusable: Option<String> => key(),
    /// Number of windows.
    n_windows: i32 => number("windows"),
    /// Windows that flipped the answer.
    n_flipped: i32 => number("windows"),
    /// Windows whose outcome decides nothing.
    n_undefined: i32 => number("windows"),
    /// Number of reasoning tokens.
    n_reason: i32 => number("tokens"),
    /// Share of important tokens among those with a label; null where no token has one.
    important_share: Option<f64> => number("1"),
    /// Rule that found the answer boundary.
    boundary_kind: String => word(BOUNDARY_KINDS),
    /// Text of the control.
    control_text: String => text(),
    /// Number of tokens of the control.
    control_n_new: i32 => number("tokens"),
}
