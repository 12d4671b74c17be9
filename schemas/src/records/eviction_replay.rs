//! `eviction_replay`: recorded traces fed under a policy, and the answers decoded after them.

crate::record::record! {
    /// One trace under a policy and a budget a row: which important tokens were kept, and whether the answer is right.
    /// The tokens up to the answer are those of the trace; only the answer is decoded.
    pub struct EvictionReplay in "eviction_replay", version 1 0, unique by (trace_id, policy, budget);

    /// Name of the trace.
    trace_id: String => key(),
    /// Name of the problem in its set.
    problem_id: String => key(),
    /// Problem set that the problem comes from.
    dataset: String => key(),
    /// Policy, as in `eviction_runs`.
    policy: String => key(),
    /// Budget as asked for.
    budget: String => key(),
    /// All parts of the policy.
    composition: String => key(),
    /// The budget in tokens a layer; null where the policy cannot run in it.
    budget_tokens: Option<i32> => number("tokens"),
    /// Prompt tokens.
    n_prompt: i32 => number("tokens"),
    /// Reasoning tokens that were fed.
    n_fed: i32 => number("tokens"),
    /// Important tokens among those that could be evicted; null where nothing was labelled.
    n_important: Option<i32> => number("tokens"),
    /// Share of the important tokens that could be evicted and are still held at the end, a mean over kept sets; null
    /// without any.
    mass_end: Option<f64> => number("1"),
    /// (share - that of a random choice) / (that of the best choice - that of a random one), at the end; null where
    /// the two are the same.
    gain_end: Option<f64> => number("1"),
    /// Mean of the share over the steps from the first eviction on.
    mass_mean: Option<f64> => number("1"),
    /// The same gain for the mean over steps.
    gain_mean: Option<f64> => number("1"),
    /// Tokens evicted from each kept set.
    n_evicted: Option<i32> => number("tokens"),
    /// Whether the budget was kept and nothing protected was missing.
    certificate: Option<bool> => flag(),
    /// Whether the answer decoded after the whole trace, without eviction, is right; null where that cannot be said.
    full_correct: Option<bool> => flag(),
    /// Whether it is right with the tokens that the policy kept, but keys and values as they are without eviction; null
    /// also where positions are not logical, since there are no such keys then.
    clean_correct: Option<bool> => flag(),
    /// Whether it is right with the policy's own keys and values.
    own_correct: Option<bool> => flag(),
    /// The answer without eviction.
    full_answer: Option<String> => text(),
    /// The answer with clean keys and values.
    clean_answer: Option<String> => text(),
    /// The answer with own keys and values.
    own_answer: Option<String> => text(),
}
