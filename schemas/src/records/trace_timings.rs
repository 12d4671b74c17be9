//! `trace_timings`: time and work of each generated trace. Differs from run to run.

crate::record::record! {
    /// Time and work of each generated trace. Not a data file: its values differ from run to run.
    pub struct TraceTiming in "trace_timings", version 1 0, sorted by (trace_id);

    /// Name of the trace.
    trace_id: String => key(),
    /// Elapsed time in seconds. A row of a batch has its share.
    wall_s: f64 => number("s"),
    /// Tokens that went through the model.
    n_forwarded: i64 => number("tokens"),
    /// Tokens that were decoded one at a time.
    n_decoded: i64 => number("tokens"),
    /// Rows that ran together.
    batch: i32 => number("rows"),
    /// Threads of the run.
    threads: i32 => number("threads"),
}
