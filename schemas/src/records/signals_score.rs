//! `signals_score`: scores of eviction policies.

crate::record::record! {
    /// Scores of eviction policies that are frozen at birth, one token a row; they hold their own rolling windows.
    pub struct SignalsScore in "signals_score", version 1 0, unique by (trace_id, pos);

    /// Name of the trace.
    trace_id: String => key(),
    /// Index of the token in its trace, prompt included.
    pos: i32 => position(),
    /// Token id.
    token_id: i32 => number("token id"),
    /// Rolling z-score of `hs_l2` at layer 10 less that at layer 21.
    epikv: Option<f32> => number("1"),
    /// The same of rolling means.
    epikv_raw: Option<f32> => number("1"),
    /// Layer 10 alone.
    epikv_a: Option<f32> => number("1"),
    /// Layer 21 alone, with a minus.
    epikv_b: Option<f32> => number("1"),
    /// 1.29 times the z-score of layers 7-13, less that of layers 18-25.
    band_adaptive: Option<f32> => number("1"),
    /// Rolling mean of the variance of keys, over layers and KV heads.
    kv_key: Option<f32> => number("1"),
    /// Rolling mean of the variance of values, over layers and KV heads.
    kv_val: Option<f32> => number("1"),
    /// `lag_key` of the keys of all layers averaged channel by channel.
    lag_kv_key: Option<f32> => number("1"),
    /// `lag_kv_key` and the same of the values, added.
    lag_kv: Option<f32> => number("1"),
}
