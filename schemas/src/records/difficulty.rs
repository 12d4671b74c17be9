//! `difficulty`: do other layers predict the labels on harder problems?

crate::record::record! {
    /// One number of each problem (the mean over its traces) against the difficulty of its problem a row: the coefficient of a layer of `hs_l2` less
    /// the problem's mean over layers, a contrast over layers, or all layers at once.
    pub struct DifficultyRow in "difficulty", version 1 1, unique by (dataset, smoothing, unit, layer);

    /// Problem set of the traces.
    dataset: String => key(),
    /// Smoother of `hs_l2`, as in `correlations`.
    smoothing: String => key(),
    /// What is compared with the difficulty: `layer`, a contrast of `heterogeneity`, or `interaction`, which is all
    /// layers at once.
    unit: String => word(&["interaction", "layer", "band_a", "band_b", "a_less_b", "trend"]),
    /// The layer, 0-based; null for the others.
    layer: Option<i16> => number("layer"),
    /// Traces with a difficulty and coefficients at all layers.
    n_traces: i32 => number("traces"),
    /// Problems of these traces: the units that are drawn and tested; null in files of earlier versions.
    n_problems: Option<i32> => number("problems"),
    /// Spearman's rho over problems with difficulty; for the interaction the sum of its squares over layers.
    statistic: Option<f64> => number("1"),
    /// Lower bound of rho by the bootstrap over problems (`BCa`); null for the interaction.
    boot_lo: Option<f64> => number("1"),
    /// Its upper bound.
    boot_hi: Option<f64> => number("1"),
    /// p-value under difficulties permuted over problems, two-sided for rho.
    p: Option<f64> => number("1"),
    /// p-value of a layer corrected for all layers (max-T); null for the others.
    p_maxt: Option<f64> => number("1"),
}
