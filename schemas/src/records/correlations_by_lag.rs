//! `correlations_by_lag`: rho of labels with signals some tokens before or after.

crate::record::record! {
    /// One signal of the model, layer, smoother and lag against the labels of one problem set a row: rho within traces
    /// between the label of a token and the signal `lag` tokens later (earlier, if below 0). At lag 0 it equals
    /// `correlations`, scope `within`.
    pub struct CorrelationsByLag in "correlations_by_lag", version 1 0,
        unique by (dataset, signal, layer, smoothing, lag);

    /// Problem set of the traces.
    dataset: String => key(),
    /// Signal, as in `correlations`.
    signal: String => key(),
    /// Layer of the signal, 0-based; null for a signal without layers.
    layer: Option<i16> => number("layer"),
    /// Smoother, as in `correlations`.
    smoothing: String => key(),
    /// Tokens from the label to the signal: 0 and powers of two up to `--max-lag`, both ways.
    lag: i32 => number("tokens"),
    /// Tokens of the traces in `n_eff`; pairs with a value outside the decoded tokens are left out.
    n_tokens: i64 => number("tokens"),
    /// Problems with a trace whose own coefficient is defined.
    n_eff: i32 => number("problems"),
    /// Spearman's rho within traces, pooled in Fisher's z with equal weights; null where undefined.
    rho: Option<f64> => number("1"),
}
