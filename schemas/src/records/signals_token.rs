//! `signals_token`: signals of the distribution over the vocabulary and of the embedding.

crate::record::record! {
    /// Signals of the distribution over the vocabulary and of the embedding, one token a row, as recorded, without
    /// smoothing.
    pub struct SignalsToken in "signals_token", version 1 1, unique by (trace_id, pos);

    /// Name of the trace.
    trace_id: String => key(),
    /// Index of the token in its trace, prompt included.
    pos: i32 => position(),
    /// Token id.
    token_id: i32 => number("token id"),
    /// `-ln p` of the token itself, from the logits before it; null at the first token.
    surprisal: Option<f32> => number("nat"),
    /// Entropy of the distribution over the next token, from the logits after the token.
    entropy: Option<f32> => number("nat"),
    /// Largest less second largest logit after the token.
    margin: Option<f32> => number("logit"),
    /// L2 norm of the step of the embedding from the token before, a baseline without context; null at the first token.
    embed_l2: Option<f32> => number("1"),
}
