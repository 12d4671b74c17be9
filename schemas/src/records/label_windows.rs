//! `label_windows`: the answer after each window of tokens was occluded.

use super::OUTCOMES;

crate::record::record! {
    /// One occlusion a row: a window of tokens was replaced by filler and the answer was regenerated greedily.
    pub struct LabelWindow in "label_windows", version 1 1, unique by (trace_id, window);

    /// Name of the trace.
    trace_id: String => key(),
    /// Number of the window in its trace, from 0.
    window: i32 => number("1"),
    /// Index of the first occluded token.
    start: i32 => position(),
    /// Index after the last occluded token.
    end: i32 => position(),
    /// What replaced the window: `eos`, `pad`, `random`, `randmulti` or the name of another intervention.
    filler: String => key(),
    /// Sha256 over the filler's token ids, each as four little-endian bytes.
    filler_ids_sha: String => key(),
    /// Answer found in the regenerated text; null where there is none.
    answer: Option<String> => text(),
    /// How the answer compares with that of the control.
    outcome: String => word(OUTCOMES),
    /// Whether the answer depends on the window; null where the outcome decides nothing.
    flipped: Option<bool> => flag(),
    /// Number of regenerated tokens.
    n_new: i32 => number("tokens"),
    /// Whether the regeneration ended at the limit of new tokens.
    hit_limit: bool => flag(),
    /// Smallest difference between the largest and the second largest logit over the regenerated tokens; null where
    /// none was generated.
    min_margin: Option<f32> => number("1"),
    /// The regenerated text.
    answer_text: String => text(),
    /// How much less likely the control's answer is after the window was withheld: its log-probability in the control minus
    /// that here, over at most its first 257 tokens; null where either is not known.
    logprob_drop: Option<f64> => number("nats"),
    /// Whether the reference answer stands, as a word of its own, in the reasoning after the window; null where there is no
    /// reference.
    readable_after: Option<bool> => flag(),
}
