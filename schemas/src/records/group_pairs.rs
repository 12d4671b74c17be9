//! `group_pairs`: comparisons of two problem sets or models.

use super::CONTRASTS;

crate::record::record! {
    /// One column, or one contrast over the layers of `hs_l2`, compared between two groups a row. A group is a problem
    /// set under a model; its members are the coefficients within traces, in Fisher's z.
    pub struct GroupPair in "group_pairs", version 1 0,
        unique by (signal, layer, smoothing, contrast, group_a, group_b);

    /// Signal, as in `correlations`.
    signal: String => key(),
    /// Layer of the signal, 0-based; null for a signal without layers and for contrasts.
    layer: Option<i16> => number("layer"),
    /// Smoother, as in `correlations`.
    smoothing: String => key(),
    /// What is compared, as in `heterogeneity`.
    contrast: String => word(CONTRASTS),
    /// First group: model or run, and problem set.
    group_a: String => key(),
    /// The second, in the same form.
    group_b: String => key(),
    /// Problems of the first group.
    n_a: i32 => number("problems"),
    /// Problems of the second group.
    n_b: i32 => number("problems"),
    /// Mean of Fisher's z over the problems of the first group.
    mean_a: f64 => number("1"),
    /// Mean of Fisher's z over the problems of the second group.
    mean_b: f64 => number("1"),
    /// Mean of the first group less that of the second.
    difference: f64 => number("1"),
    /// Standard error of the difference.
    se: f64 => number("1"),
    /// Two-sided p-value of Welch's t test.
    p_welch: f64 => number("1"),
    /// Lower bound of the difference, by a bootstrap over the problems of both groups (`BCa`); null where undefined.
    boot_lo: Option<f64> => number("1"),
    /// Its upper bound.
    boot_hi: Option<f64> => number("1"),
}
