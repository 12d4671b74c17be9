//! `signals_age`: attention that tokens had received at an age.

crate::record::record! {
    /// Attention that a token had received some tokens after its birth, one token and age a row, as recorded with
    /// `--kernel explicit`: the ages that were asked for by name, `h2o_attn@age=W`, besides that of 64, which
    /// `signals_attn` has.
    pub struct SignalsAge in "signals_age", version 1 0, unique by (trace_id, age, pos);

    /// Name of the trace.
    trace_id: String => key(),
    /// Tokens after the token whose attention counts, its own included.
    age: i32 => number("tokens"),
    /// Index of the token in its trace, prompt included.
    pos: i32 => position(),
    /// Attention received by then, summed over queries, mean over heads and layers; up to the trace's end where that comes
    /// before.
    h2o_attn: Option<f32> => number("1"),
}
