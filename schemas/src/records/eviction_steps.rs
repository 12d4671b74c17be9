//! `eviction_steps`: every evicted token, with position, score and reason.

/// Why a token was evicted.
const REASONS: &[&str] = &["lowest_score", "tie", "unscored"];

crate::record::record! {
    /// One evicted token a row, for each kept set that lost it. Recorded on request, in parts of one generation each.
    pub struct EvictionStep in "eviction_steps", version 1 0, unique by (problem_id, policy, budget, sample, step, layer, head, pos);

    /// Name of the problem in its set.
    problem_id: String => key(),
    /// Policy, as in `eviction_runs`.
    policy: String => key(),
    /// Budget as asked for.
    budget: Option<String> => key(),
    /// Which of several samples of the problem this is, from 0.
    sample: i32 => number("1"),
    /// Number of generated tokens fed before the eviction; 0 right after the prompt.
    step: i32 => number("tokens"),
    /// Layer of the kept set, 0-based; null where all layers share it.
    layer: Option<i32> => number("1"),
    /// KV head of the kept set, 0-based; null where all heads share it.
    head: Option<i32> => number("1"),
    /// Position of the token in the whole sequence, prompt included.
    pos: i32 => position(),
    /// Score of the token at that time; null where it had none.
    score: Option<f32> => number("1"),
    /// Lowest score among the tokens that were kept without protection; null where there was none or it had no score.
    kept_score: Option<f32> => number("1"),
    /// `lowest_score`: all tokens kept without protection have higher scores; `tie`: a newer token with the same score
    /// was kept; `unscored`: the policy's score is undefined for the token.
    reason: String => word(REASONS),
}
