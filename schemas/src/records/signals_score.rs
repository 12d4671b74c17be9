//! `signals_score`: scores of eviction policies.

crate::record::record! {
    /// Scores of eviction policies that are set once, when the token is fed, one token a row; their rolling windows are
    /// included.
    pub struct SignalsScore in "signals_score", version 1 0, unique by (trace_id, pos);

    /// Name of the trace.
    trace_id: String => key(),
    /// Index of the token in its trace, prompt included.
    pos: i32 => position(),
    /// Token id.
    token_id: i32 => number("token id"),
    /// Rolling z-score of `hs_l2` at layer 10 less that at layer 21.
    epikv: Option<f32> => number("1"),
    /// Rolling mean of `hs_l2` at layer 10 less that at layer 21.
    epikv_raw: Option<f32> => number("1"),
    /// Rolling z-score of `hs_l2` at layer 10 alone.
    epikv_a: Option<f32> => number("1"),
    /// Negative rolling z-score of `hs_l2` at layer 21 alone.
    epikv_b: Option<f32> => number("1"),
    /// 1.29 times the z-score of `hs_l2` averaged over layers 7-13, less that over layers 18-25.
    band_adaptive: Option<f32> => number("1"),
    /// Rolling mean of the variance of keys, over layers and KV heads.
    kv_key: Option<f32> => number("1"),
    /// Rolling mean of the variance of values, over layers and KV heads.
    kv_val: Option<f32> => number("1"),
    /// `lag_key` of the keys of all layers averaged channel by channel.
    lag_kv_key: Option<f32> => number("1"),
    /// Sum of `lag_kv_key` and the same of the values.
    lag_kv: Option<f32> => number("1"),
}
