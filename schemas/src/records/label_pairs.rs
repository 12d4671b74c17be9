//! `label_pairs`: windows withheld two at a time.

use super::OUTCOMES;

crate::record::record! {
    /// One pair of windows a row, withheld together; neither of them flips the answer alone.
    pub struct LabelPair in "label_pairs", version 1 0, unique by (trace_id, first, second);

    /// Name of the trace.
    trace_id: String => key(),
    /// Number of the first window.
    first: i32 => number("1"),
    /// Number of the second window.
    second: i32 => number("1"),
    /// Answer found in the regenerated text; null where there is none.
    answer: Option<String> => text(),
    /// How the answer compares with that of the control.
    outcome: String => word(OUTCOMES),
    /// Whether the answer depends on the two together; null where the outcome decides nothing.
    flipped: Option<bool> => flag(),
}
