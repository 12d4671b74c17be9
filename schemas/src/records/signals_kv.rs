//! `signals_kv`: signals of keys and values.

use crate::layers::PerLayer;

crate::record::record! {
    /// Signals of the token's own key and value, one token a row, as recorded, without smoothing.
    pub struct SignalsKv in "signals_kv", version 1 1, unique by (trace_id, pos);

    /// Name of the trace.
    trace_id: String => key(),
    /// Index of the token in its trace, prompt included.
    pos: i32 => position(),
    /// Token id.
    token_id: i32 => number("token id"),
    /// Unbiased variance over the channels of the key after rotation, mean over KV heads.
    kv_key_var: PerLayer => number("1"),
    /// Unbiased variance over the channels of the value, mean over KV heads.
    kv_val_var: PerLayer => number("1"),
    /// L2 norm of the key after rotation, mean over KV heads.
    kv_key_norm: PerLayer => number("1"),
    /// Unbiased variance over the channels of the key before rotation, mean over KV heads.
    kv_key_var_prerope: PerLayer => number("1"),
    /// L2 norm of the key before rotation, mean over KV heads.
    kv_key_norm_prerope: PerLayer => number("1"),
    /// L2 norm of the value, mean over KV heads.
    kv_val_norm: PerLayer => number("1"),
    /// Largest less smallest channel of the value, mean over KV heads.
    kv_val_range: PerLayer => number("1"),
    /// Unbiased variance over KV heads of the mean over channels of the key after rotation; null with a single head.
    cross_head_var: PerLayer => number("1"),
    /// Deviation over channels of the key, scaled by the extremes of the chunk of 128 tokens before, mean over KV heads.
    lag_key: PerLayer => number("1"),
    /// The same of the value.
    lag_val: PerLayer => number("1"),
    /// Cosine distance of the key to the mean direction of the keys up to it, mean over KV heads.
    key_diff: PerLayer => number("1"),
    /// Deviations over channels scaled by the extremes of the chunk of 128 tokens after, softmax over the chunk, key and value
    /// added, mean over layers and KV heads; null in the last chunks. Not causal.
    lag_next: Option<f32> => number("1"),
}
