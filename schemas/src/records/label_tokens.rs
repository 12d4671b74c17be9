//! `label_tokens`: the label of each token.

crate::record::record! {
    /// One token of a trace a row, with its label: whether the answer depends on it.
    pub struct LabelToken in "label_tokens", version 1 0, unique by (trace_id, pos);

    /// Name of the trace.
    trace_id: String => key(),
    /// Index of the token in its trace, prompt included.
    pos: i32 => position(),
    /// Token id.
    token_id: i32 => number("token id"),
    /// Part of the trace that the token belongs to.
    region: String => word(&["prompt", "reason", "answer"]),
    /// Whether any window covers the token.
    tested: bool => flag(),
    /// True where a window over the token flipped the answer, false where all were decided and none did; null where the
    /// token was not tested, or where no window flipped and one was undecided.
    important: Option<bool> => flag(),
    /// Number of decided windows that cover the token.
    n_cover: i16 => number("windows"),
    /// How many of them flipped the answer.
    n_flip: i16 => number("windows"),
}
