//! `correlations`: how each signal ranks against the labels.

use super::SIGNAL_SOURCES;

crate::record::record! {
    /// One signal, layer and smoother against the labels of one problem set a row, pooled over all tokens or within
    /// traces, with its counts. Baselines are rows too.
    pub struct Correlations in "correlations", version 1 2,
        unique by (dataset, source, signal, layer, smoothing, scope);

    /// Problem set of the traces.
    dataset: String => key(),
    /// What the signal is computed from: the model, random weights of the same shape over the same tokens, or no model.
    source: String => word(SIGNAL_SOURCES),
    /// Signal, as `epikv signals` lists them, or a baseline: `position` is the token index, `token_identity` the mean
    /// label of the same token id in the traces of the other problems (of all their tokens where it is not among them).
    signal: String => key(),
    /// Layer of the signal, 0-based; null for a signal without layers.
    layer: Option<i16> => number("layer"),
    /// Smoother: `raw`, `meanN`, `ema`, `zN` or `maxN` with a window of N tokens; `epi.smoothing` has the constants.
    smoothing: String => key(),
    /// What is ranked: all tokens at once (`pooled`); the tokens of each trace, one coefficient a trace, averaged in Fisher's z
    /// over the traces of a problem and then over problems (`within`); the same two of occluded windows, the signal's mean over a window against whether it
    /// flipped the answer, which is the unit that was intervened on; or the problems themselves, the mean signal of
    /// their traces against the share of important tokens (`between`).
    scope: String => word(&["pooled", "within", "window_pooled", "window_within", "between"]),
    /// Tokens of the traces that count; windows in the scopes of windows, problems in `between`.
    n_tokens: i64 => number("1"),
    /// Traces with usable labels.
    n_traces_total: i32 => number("traces"),
    /// Problems with a trace whose own coefficient is defined: the independent units, which are drawn and exchanged.
    n_problems: Option<i32> => number("problems"),
    /// Traces whose own coefficient is defined: those that count. Several can be samples of one problem.
    n_traces: Option<i32> => number("traces"),
    /// The independent units: `n_problems`.
    n_eff: i32 => number("problems"),
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
    /// Chance that an important token has the higher value; within traces the mean over problems of the mean over their traces.
    auc: Option<f64> => number("1"),
    /// `2 auc - 1`.
    rank_biserial: Option<f64> => number("1"),
    /// Interval of `ci_lo` and `ci_hi`: a Fisher-z form on `n_eff` traces for pooled rho (a convention, not a sampling
    /// theory), Student's t on the mean z of the problems for rho within traces.
    ci_method: String => word(&["fisher", "fieller", "bonett-wright", "student-t"]),
    /// Level of both intervals.
    ci_level: f64 => number("1"),
    /// Lower bound of rho; null where undefined, as for three problems or fewer.
    ci_lo: Option<f64> => number("1"),
    /// Upper bound of rho.
    ci_hi: Option<f64> => number("1"),
    /// Lower bound of rho by the bootstrap over problems (`BCa`); null where undefined, as for one problem.
    boot_lo: Option<f64> => number("1"),
    /// Upper bound of rho by the bootstrap over problems (`BCa`).
    boot_hi: Option<f64> => number("1"),
    /// Replicates of the bootstrap over problems in which rho is defined.
    boot_n: i32 => number("replicates"),
    /// The largest |rho| that the base rate allows without ties in the signal; null for `between`.
    rho_cap: Option<f64> => number("1"),
    /// Lower bound by Fisher's z with `1/(n-3)` on `n_eff`; these six for pooled scopes and `between`.
    fisher_lo: Option<f64> => number("1"),
    /// Upper bound by the same.
    fisher_hi: Option<f64> => number("1"),
    /// Lower bound with `1.06/(n-3)` (Fieller, Hartley and Pearson 1957).
    fieller_lo: Option<f64> => number("1"),
    /// Upper bound by the same.
    fieller_hi: Option<f64> => number("1"),
    /// Lower bound with `(1+rho^2/2)/(n-3)` (Bonett and Wright 2000).
    bonett_wright_lo: Option<f64> => number("1"),
    /// Upper bound by the same.
    bonett_wright_hi: Option<f64> => number("1"),
    /// Random-effects mean of the coefficients of the problems (`DerSimonian` and Laird 1986); within scopes only.
    rho_random: Option<f64> => number("1"),
    /// Its lower bound.
    random_lo: Option<f64> => number("1"),
    /// Its upper bound.
    random_hi: Option<f64> => number("1"),
    /// Rho within traces given the position (partial Spearman); scope `within` only.
    rho_partial_pos: Option<f64> => number("1"),
    /// Rho within tenths of each trace, which a trend that is not linear in rank does not survive; scope `within` only.
    rho_stratified: Option<f64> => number("1"),
    /// p-value under labels of other problems at matched relative position, two-sided.
    p_cross: Option<f64> => number("1"),
    /// p-value under circular shifts of each trace's labels, alike within a problem, two-sided; it rejects pure trends.
    p_shift: Option<f64> => number("1"),
    /// Deviation of rho under the labels of other problems (of its Fisher z in within scopes); smoothing raises it.
    null_sd: Option<f64> => number("1"),
    /// Distance of rho from its mean under the labels of other problems, in `null_sd`.
    z_null: Option<f64> => number("1"),
    /// p-value of the largest distance over all layers and smoothings of the signal, labels of other problems (max-T).
    p_maxt: Option<f64> => number("1"),
    /// Benjamini-Hochberg of `p_cross` over all layers and smoothings of the signal.
    q_bh: Option<f64> => number("1"),
    /// Median of the coefficients of the traces; null for pooled rows.
    rho_median_trace: Option<f64> => number("1"),
    /// Share of problems whose mean coefficient is positive; null for pooled rows.
    share_positive: Option<f64> => number("1"),
    /// Traces whose |rho| was clipped at 1 - 1e-12 before Fisher's z; 0 for pooled rows.
    k_clipped: i32 => number("traces"),
}
