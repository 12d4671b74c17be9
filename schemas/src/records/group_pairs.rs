//! `group_pairs`: two problem sets or models against each other.

use super::CONTRASTS;

crate::record::record! {
    /// A column, or a contrast over the layers of the step norm, in two groups a row. A group is a problem set under a model,
    /// its members the coefficients within traces in Fisher's z.
    pub struct GroupPair in "group_pairs", version 1 0,
        unique by (signal, layer, smoothing, contrast, group_a, group_b);

    /// Signal, as in `correlations`.
    signal: String => key(),
    /// Layer of the signal, 0-based; null for a signal without layers and for contrasts.
    layer: Option<i16> => number("layer"),
    /// Smoother, as in `correlations`.
    smoothing: String => key(),
    /// As in `heterogeneity`.
    contrast: String => word(CONTRASTS),
    /// Model or run, and problem set.
    group_a: String => key(),
    /// Another.
    group_b: String => key(),
    /// Traces of the first.
    n_a: i32 => number("traces"),
    /// Traces of the second.
    n_b: i32 => number("traces"),
    /// Mean over the traces of the first, of Fisher's z.
    mean_a: f64 => number("1"),
    /// Of the second.
    mean_b: f64 => number("1"),
    /// First less second.
    difference: f64 => number("1"),
    /// Its standard error.
    se: f64 => number("1"),
    /// Two-sided p-value of Welch's t test.
    p_welch: f64 => number("1"),
    /// Lower bound of the difference by the bootstrap of the traces of both (`BCa`); null where undefined.
    boot_lo: Option<f64> => number("1"),
    /// Its upper bound.
    boot_hi: Option<f64> => number("1"),
}
