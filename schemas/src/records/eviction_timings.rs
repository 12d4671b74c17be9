//! `eviction_timings`: time of each generation under a policy. Differs from run to run.

crate::record::record! {
    /// Time of each generation under a policy, by phase. Not a data file: its values differ from run to run. `wall_s`
    /// is the sum of `forward_s`, `score_s`, `select_s` and `move_s`.
    pub struct EvictionTiming in "eviction_timings", version 2 1, sorted by (problem_id, policy, budget, sample);

    /// Name of the problem in its set.
    problem_id: String => key(),
    /// Policy, as in `eviction_runs`.
    policy: String => key(),
    /// Budget as asked for; null for a policy that evicts nothing.
    budget: Option<String> => key(),
    /// Which of several samples of the problem this is, from 0.
    sample: i32 => number("1"),
    /// The row's share of the time of all steps that it took part in, by tokens fed, and its own scoring and evicting.
    /// Rows that run on several threads at once add up to more than the elapsed time.
    wall_s: f64 => number("s"),
    /// The part of it in forward passes that read the prompt.
    prefill_s: f64 => number("s"),
    /// The part of it in forward passes, those of the prompt included.
    forward_s: f64 => number("s"),
    /// The part of it in which tokens were scored.
    score_s: f64 => number("s"),
    /// The part of it in which the tokens to evict were chosen.
    select_s: f64 => number("s"),
    /// The part of it in which slots were freed, and keys and values moved or rotated again.
    move_s: f64 => number("s"),
    /// Bytes copied from the device to the host in that time, shared between rows in the same way; none on a CPU.
    bytes_to_host: Option<i64> => number("bytes"),
    /// Rows that ran together at most.
    batch: i32 => number("rows"),
    /// Threads of the run.
    threads: i32 => number("threads"),
    /// Attention kernel (`explicit` where attention weights were computed) and instruction set.
    kernel: String => key(),
    /// Processor and operating system, by which times may be compared.
    machine: String => key(),
}
