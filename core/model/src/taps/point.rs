//! Places in the forward pass, and what leaves the device of a tensor there.

/// A named place in the forward pass. Layers are 0-based; shapes are for `T` packed tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TapPoint {
    /// Embedding output `[T, d]`.
    Embed,
    /// Residual stream after block `l`, `[T, d]`: `hidden_states[l + 1]` of Transformers, but **before** the final norm
    /// for the last block too.
    ResidPost(usize),
    /// After the final norm `[T, d]`.
    FinalNorm,
    /// Queries after rotation `[T, H, D]`.
    QueryPostRope(usize),
    /// Keys after rotation, as cached `[T, H_kv, D]`.
    KeyPostRope(usize),
    /// Keys before rotation (after the q/k norm where there is one) `[T, H_kv, D]`.
    KeyPreRope(usize),
    /// Values `[T, H_kv, D]`.
    Value(usize),
}

/// What leaves the device of a tapped tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reduce {
    /// All of it.
    Full,
    /// L2 norm over the last axis.
    Norm,
    /// Mean over the last axis.
    Mean,
    /// Unbiased variance over the last axis.
    Variance,
    /// Largest less smallest over the last axis.
    Range,
    /// L2 norm of the difference to the previous token of the row, also across calls; only for `[T, d]` points.
    /// Undefined at the first token that a cache ever takes.
    StepNorm,
    /// One less the cosine to the previous token of the row, as [`Reduce::StepNorm`] otherwise.
    StepCosine,
}
