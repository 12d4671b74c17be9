//! `correlations`: how each signal ranks against the labels.

use super::SIGNAL_SOURCES;

crate::record::record! {
    /// One signal, layer and smoothing against the labels of one problem set a row, pooled over all tokens or within
    /// traces, with the counts that it rests on. Baselines are rows too.
    pub struct Correlations in "correlations", version 1 0,
        unique by (dataset, source, signal, layer, smoothing, scope);

    /// Problem set of the traces.
    dataset: String => key(),
    /// Whose numbers the signal is made of: those of the model, those of random weights of the same shape over the same
    /// tokens, or of no model at all.
    source: String => word(SIGNAL_SOURCES),
    /// Signal, as `epikv signals` lists them, or a baseline: `position` is the token index, `token_identity` the mean
    /// label of the same token id in the other traces (of all their tokens where it is not among them).
    signal: String => key(),
    /// Layer of the signal, 0-based; null for a signal without layers.
    layer: Option<i16> => number("layer"),
    /// Smoother: `raw`, `meanN`, `ema` or `zN` with a window of N tokens; `epi.smoothing` has the constants.
    smoothing: String => key(),
    /// All tokens at once, or one coefficient a trace, pooled in Fisher's z with equal weights.
    scope: String => word(&["pooled", "within"]),
    /// Tokens of the traces that count.
    n_tokens: i64 => number("tokens"),
    /// Traces with usable labels.
    n_traces_total: i32 => number("traces"),
    /// Traces whose own coefficient is defined: those that count, and the independent units.
    n_eff: i32 => number("traces"),
    /// Traces left out for fewer than four labelled tokens.
    excl_short: i32 => number("traces"),
    /// Traces left out because all their labels are the same.
    excl_constant_label: i32 => number("traces"),
    /// Traces left out because the signal is constant.
    excl_constant_signal: i32 => number("traces"),
    /// Labelled tokens left out because the signal is undefined there.
    excl_undefined: i64 => number("tokens"),
    /// Share of important tokens; it caps rho at about sqrt(3 p (1-p)).
    base_rate: Option<f64> => number("1"),
    /// Spearman's rho with midranks against the binary label.
    rho: Option<f64> => number("1"),
    /// Chance that an important token has the higher value; within traces the mean over traces.
    auc: Option<f64> => number("1"),
    /// `2 auc - 1`.
    rank_biserial: Option<f64> => number("1"),
    /// Interval of `ci_lo` and `ci_hi`: a Fisher-z form on `n_eff` traces for pooled rho (a convention, not a sampling
    /// theory), Student's t on the z of the traces for rho within traces.
    ci_method: String => word(&["fisher", "fieller", "bonett-wright", "student-t"]),
    /// Level of both intervals.
    ci_level: f64 => number("1"),
    /// Lower bound of rho; null where undefined, as for three traces or fewer.
    ci_lo: Option<f64> => number("1"),
    /// Upper bound of rho.
    ci_hi: Option<f64> => number("1"),
    /// Lower bound of rho by the trace bootstrap (`BCa`); null where undefined, as for one trace.
    boot_lo: Option<f64> => number("1"),
    /// Upper bound of rho by the trace bootstrap (`BCa`).
    boot_hi: Option<f64> => number("1"),
    /// Replicates of the trace bootstrap in which rho is defined.
    boot_n: i32 => number("replicates"),
    /// Median of the coefficients of the traces; null for pooled rows.
    rho_median_trace: Option<f64> => number("1"),
    /// Share of traces with a positive coefficient; null for pooled rows.
    share_positive: Option<f64> => number("1"),
    /// Traces whose |rho| was clipped at 1 - 1e-12 before Fisher's z; 0 for pooled rows.
    k_clipped: i32 => number("traces"),
}
