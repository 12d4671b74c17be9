//! `label_refined`: which part of a flipping window the answer depends on.

use super::OUTCOMES;

crate::record::record! {
    /// One part of a flipping window a row, withheld alone. A part that flips is halved again, down to four tokens.
    pub struct LabelRefined in "label_refined", version 1 0, unique by (trace_id, start, end);

    /// Name of the trace.
    trace_id: String => key(),
    /// Index of the first withheld token.
    start: i32 => position(),
    /// Index after the last withheld token.
    end: i32 => position(),
    /// Answer found in the regenerated text; null where there is none.
    answer: Option<String> => text(),
    /// How the answer compares with that of the control.
    outcome: String => word(OUTCOMES),
    /// Whether the answer depends on the part; null where the outcome decides nothing.
    flipped: Option<bool> => flag(),
    /// Whether the part flips and neither of its halves does, or it is too small to have any.
    smallest: bool => flag(),
}
