//! `band_surprisal`: what is left of band B when the surprisal is held fixed.

crate::record::record! {
    /// `hs_l2`, averaged over the layers of band B, against the labels of one problem set a row: rho within traces as it is,
    /// and given the surprisal of the token smoothed alike.
    pub struct BandSurprisal in "band_surprisal", version 1 1, unique by (dataset);

    /// Problem set of the traces.
    dataset: String => key(),
    /// Smoother of both, as in `correlations`.
    smoothing: String => key(),
    /// Traces in which both coefficients are defined.
    n_traces: i32 => number("traces"),
    /// Problems of these traces: the units that are drawn and tested; null in files of earlier versions.
    n_problems: Option<i32> => number("problems"),
    /// Rho within traces, pooled in Fisher's z with equal weights of the problems.
    rho: Option<f64> => number("1"),
    /// Its lower bound by the bootstrap over problems (`BCa`).
    boot_lo: Option<f64> => number("1"),
    /// Its upper bound.
    boot_hi: Option<f64> => number("1"),
    /// The same given the surprisal (partial Spearman): 0 if predictability is all there is to the band.
    rho_given: Option<f64> => number("1"),
    /// Its lower bound.
    given_lo: Option<f64> => number("1"),
    /// Its upper bound.
    given_hi: Option<f64> => number("1"),
}
