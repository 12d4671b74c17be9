//! `eviction_curves`: answers after keeping or deleting the tokens that a score ranks highest.

crate::record::record! {
    /// One trace, score, direction and share a row. Keys and values are those without eviction; the prompt is always held.
    pub struct EvictionCurve in "eviction_curves", version 1 0, unique by (trace_id, score, kind, percent);

    /// Name of the trace.
    trace_id: String => key(),
    /// Name of the problem in its set.
    problem_id: String => key(),
    /// Problem set that the problem comes from.
    dataset: String => key(),
    /// The score.
    score: String => key(),
    /// `keep`: only the highest reasoning tokens are held; `delete`: all but the highest.
    kind: String => word(&["keep", "delete"]),
    /// Percentage of the reasoning tokens that count as the highest.
    percent: i32 => number("%"),
    /// Reasoning tokens held.
    n_held: i32 => number("tokens"),
    /// Whether the answer is right; null where that cannot be said.
    correct: Option<bool> => flag(),
    /// The answer.
    answer: Option<String> => text(),
}
