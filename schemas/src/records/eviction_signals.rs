//! `eviction_signals`: signals recorded while tokens are evicted.

crate::record::record! {
    /// One generated token, signal and layer a row, recorded on request.
    pub struct EvictionSignal in "eviction_signals", version 1 0, unique by (problem_id, policy, budget, sample, signal, layer, pos);

    /// Name of the problem in its set.
    problem_id: String => key(),
    /// Policy, as in `eviction_runs`.
    policy: String => key(),
    /// Budget as asked for; null for a policy that evicts nothing.
    budget: Option<String> => key(),
    /// Which of several samples of the problem this is, from 0.
    sample: i32 => number("1"),
    /// The signal.
    signal: String => key(),
    /// Its layer, 0-based; null where it has none.
    layer: Option<i32> => number("1"),
    /// Position of the token in the whole sequence, prompt included.
    pos: i32 => position(),
    /// Its value under the policy; null where undefined.
    value: Option<f32> => number("1"),
    /// Its value without eviction at the same token; null from the first token on that differs.
    full_value: Option<f32> => number("1"),
}
