//! `signals_kv`: signals of keys and values.

use crate::layers::PerLayer;

crate::record::record! {
    /// Signals of the token's own key and value, one token a row, as recorded: smoothed series follow from them.
    pub struct SignalsKv in "signals_kv", version 1 0, unique by (trace_id, pos);

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
}
