//! `selection`: how well each score separates important tokens when tokens are evicted.

crate::record::record! {
    /// One score or combination of layers on one problem set a row, replayed as a policy under a budget: the mean over
    /// traces of the area under the ROC curve, over the tokens that could be evicted at each eviction.
    pub struct Selection in "selection", version 1 1, unique by (dataset, budget, candidate);

    /// Problem set of the traces.
    dataset: String => key(),
    /// The budget, as typed.
    budget: String => key(),
    /// A score as `epikv signals` lists them, `random:` before it through random weights, a baseline, or `z10`, `-z21`, `z10-z21`: rolling z-scores of `hs_l2` at these layers.
    candidate: String => key(),
    /// Kind of the score.
    kind: String => word(&["score", "baseline", "layer", "pair"]),
    /// Layer that is added, 0-based; null for scores and for a layer that is subtracted alone.
    layer_plus: Option<i16> => number("layer"),
    /// Layer that is subtracted.
    layer_minus: Option<i16> => number("layer"),
    /// Traces with evictions at which the candidates included both labels.
    n_traces: i32 => number("traces"),
    /// Problems of these traces: the units that are drawn; null in files of earlier versions.
    n_problems: Option<i32> => number("problems"),
    /// Mean over these problems of the mean over their traces; null without any.
    auc: Option<f64> => number("1"),
    /// Lower bound by the bootstrap over problems (`BCa`).
    auc_lo: Option<f64> => number("1"),
    /// Upper bound by the bootstrap over problems.
    auc_hi: Option<f64> => number("1"),
    /// Whether it is the best of all layers and pairs on these traces.
    picked: bool => flag(),
    /// For the chosen one: mean AUC on problems that were not used to choose it, over five splits.
    auc_held_out: Option<f64> => number("1"),
}
