//! `signals_attn`: signals of attention weights.

use crate::layers::PerLayer;

crate::record::record! {
    /// Signals of attention weights, one token a row, recorded with `--kernel explicit`: smoothed series follow from
    /// them.
    pub struct SignalsAttn in "signals_attn", version 1 0, unique by (trace_id, pos);

    /// Name of the trace.
    trace_id: String => key(),
    /// Index of the token in its trace, prompt included.
    pos: i32 => position(),
    /// Token id.
    token_id: i32 => number("token id"),
    /// Entropy of the token's own row, mean over query heads.
    attn_entropy: PerLayer => number("nat"),
    /// Distance in tokens to the attended tokens, averaged by attention weight, mean over query heads.
    attn_distance: PerLayer => number("tokens"),
    /// Attention received up to the end of the trace, summed over queries, mean over heads and layers. Not causal.
    h2o_attn: Option<f32> => number("1"),
    /// The same up to 64 tokens after the token: `h2o_attn@age=64`. Other ages stand in `signals_age`.
    h2o_attn_age64: Option<f32> => number("1"),
    /// Attention received from the last token of the trace, mean over heads and layers. Not causal.
    attn_last: Option<f32> => number("1"),
}
