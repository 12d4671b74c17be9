//! `correlations_by_trace`: the coefficient of each trace.

use super::SIGNAL_SOURCES;

crate::record::record! {
    /// One signal, layer and smoothing against the labels of one trace a row. Everything in `correlations` but the pooled
    /// figures follows from it.
    pub struct CorrelationsByTrace in "correlations_by_trace", version 1 2,
        unique by (trace_id, source, signal, layer, smoothing);

    /// Name of the trace.
    trace_id: String => key(),
    /// Problem that the trace solves; null in files of earlier versions.
    problem_id: Option<String> => text(),
    /// Problem set of the trace.
    dataset: String => key(),
    /// What the signal is computed from, as in `correlations`.
    source: String => word(SIGNAL_SOURCES),
    /// Signal or baseline, as in `correlations`.
    signal: String => key(),
    /// Layer of the signal, 0-based; null for a signal without layers.
    layer: Option<i16> => number("layer"),
    /// Smoother, as in `correlations`.
    smoothing: String => key(),
    /// Labelled tokens with a value.
    n: i32 => number("tokens"),
    /// Important ones among them.
    m: i32 => number("tokens"),
    /// Spearman's rho with midranks against the label; null where undefined.
    rho: Option<f64> => number("1"),
    /// Probability that an important token has a higher value than an unimportant one; ties count half.
    auc: Option<f64> => number("1"),
    /// Spearman's rho of the signal with the position, over the labelled tokens.
    rho_pos: Option<f64> => number("1"),
    /// Lag-1 autocorrelation of the signal over the labelled tokens.
    lag1: Option<f64> => number("1"),
    /// Spearman's rho with the label given the position; null below eight tokens.
    rho_partial_pos: Option<f64> => number("1"),
    /// Rho with the label within tenths of the trace.
    rho_stratified: Option<f64> => number("1"),
    /// Why rho is undefined; null where it is defined.
    reason: Option<String> => word(&["short", "constant_label", "constant_signal"]),
}
