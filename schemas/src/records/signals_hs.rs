//! `signals_hs`: signals of the residual stream.

use crate::layers::PerLayer;

crate::record::record! {
    /// Signals of the residual stream, one token a row, as recorded, without smoothing.
    pub struct SignalsHs in "signals_hs", version 1 1, unique by (trace_id, pos);

    /// Name of the trace.
    trace_id: String => key(),
    /// Index of the token in its trace, prompt included.
    pos: i32 => position(),
    /// Token id.
    token_id: i32 => number("token id"),
    /// L2 norm of the step of the residual stream after the block from the token before; null at the first token.
    hs_l2: PerLayer => number("1"),
    /// Cosine distance of the residual stream after the block to that of the token before; null at the first token.
    hs_cos: PerLayer => number("1"),
    /// L2 norm of the residual stream after the block, before the final norm.
    hs_norm: PerLayer => number("1"),
}
