//! `eviction_runs`: answer and cache of each problem under a policy and a budget.

/// Outcome of a problem under a policy. Each outcome has its own word.
const OUTCOMES: &[&str] = &[
    "correct",
    "wrong",
    "no_box",
    "empty",
    "loop",
    "garbage",
    "truncated",
    "unsure",
    "no_gold",
    "infeasible",
    "error",
];

crate::record::record! {
    /// One generation a row: a problem under a policy, a budget and a sample, with its answer and the sizes of the
    /// cache. Sizes are in tokens a layer.
    pub struct EvictionRun in "eviction_runs", version 2 2, unique by (problem_id, policy, budget, sample);

    /// Name of the problem in its set.
    problem_id: String => key(),
    /// Policy: the name in the policy table, then the parts that were changed.
    policy: String => key(),
    /// Budget as asked for; null for a policy that evicts nothing.
    budget: Option<String> => key(),
    /// Which of several samples of the problem this is, from 0.
    sample: i32 => number("1"),
    /// Hash of everything that determines the row: model, prompt, policy, budget, sampling, limits, gold.
    cell: String => text(),
    /// Problem set that the problem comes from.
    dataset: String => key(),
    /// All parts of the policy: score, protection, selection, trigger, scope, position mode, numbers of the
    /// cache, seed of its draws.
    composition: String => key(),
    /// Layers that the score reads, joined by +; null where it reads none or all.
    layers: Option<String> => key(),
    /// Whether the policy needs attention weights; a fused kernel does not give them.
    needs_attention: bool => flag(),
    /// The budget in tokens a layer, everything counted; null where there is none or it could not be worked out.
    budget_tokens: Option<i32> => number("tokens"),
    /// Outcome. `no_box`: the text ended without an answer; `truncated`: the limit of new tokens came before an answer;
    /// `loop`: the same, and the text repeats itself; `garbage`: no answer, and characters that are no text; `empty`:
    /// only the end of sequence; `unsure`: the grader could not decide; `no_gold`: there is no right answer to compare
    /// with; `infeasible`: the budget cannot hold what a policy protects; `error`: nothing could be generated.
    outcome: String => word(OUTCOMES),
    /// Whether the answer is right; a missing answer is not. Null where that cannot be said.
    correct: Option<bool> => flag(),
    /// Answer found in the generated text; null where there is none.
    answer: Option<String> => text(),
    /// Right answer; null where the problem set has none.
    gold: Option<String> => text(),
    /// Why the generation ended; null where there was none.
    finish_reason: Option<String> => word(&["eos", "length", "context"]),
    /// Error message; null without an error.
    error: Option<String> => text(),
    /// Number of prompt tokens.
    n_prompt: i32 => number("tokens"),
    /// Number of generated tokens, the end included; null where there was no generation.
    n_new: Option<i32> => number("tokens"),
    /// The generated tokens; null where there was no generation.
    token_ids: Option<Vec<i32>> => number("token id"),
    /// Index of the first generated token, from 0, that differs from the run without eviction; null where none differs
    /// or there was no generation.
    first_difference: Option<i32> => number("1"),
    /// Smallest difference between the largest and the second largest logit; null where there was no generation.
    min_margin: Option<f32> => number("1"),
    /// Tokens held after the last step.
    held_last: Option<i32> => number("tokens"),
    /// Mean of the tokens held after each step from the first eviction on; null where nothing was evicted.
    held_steady: Option<f64> => number("tokens"),
    /// Mean over steps of the tokens held after each.
    held_mean: Option<f64> => number("tokens"),
    /// Most tokens held after a step.
    held_max: Option<i32> => number("tokens"),
    /// Most tokens held at any time: a step appends before the policy evicts.
    held_peak: Option<i32> => number("tokens"),
    /// Mean over steps, layers and KV heads of the tokens that a generated token reads, itself included. Null for a policy
    /// that reads everything held, where there was no generation, and in files before 2.2.
    read_tokens: Option<f64> => number("tokens"),
    /// Bytes of the keys and values of `held_peak` tokens.
    peak_kv_bytes: Option<i64> => number("bytes"),
    /// Bytes of the cache's storage at most, free slots included.
    allocated_kv_bytes: Option<i64> => number("bytes"),
    /// Bytes of keys and values held after each step, summed over steps: the cost of the generation in memory and time
    /// together. Null where there was no generation, and in files before 2.1.
    kv_byte_steps: Option<i64> => number("byte-steps"),
    /// Steps after which tokens were evicted.
    n_evictions: Option<i32> => number("steps"),
    /// Tokens evicted from each kept set.
    n_evicted: Option<i32> => number("tokens"),
    /// Whether the budget was kept after every eviction and nothing protected was ever missing, measured on the cache.
    certificate: Option<bool> => flag(),
    /// Protected tokens found missing, summed over steps and kept sets.
    n_protected_lost: Option<i32> => number("tokens"),
    /// Seed of the run; the random numbers of a row follow from seed, problem and sample.
    seed: i64 => number("1"),
    /// Sampling temperature; 0 is greedy.
    temperature: f32 => number("1"),
    /// Share of probability that sampling draws from.
    top_p: f32 => number("1"),
}
