//! `heterogeneity`: do problem sets and models agree?

use super::CONTRASTS;

crate::record::record! {
    /// One column, or one contrast over the layers of `hs_l2`, over several groups a row. A group is a problem set
    /// under a model; its members are the coefficients within traces, in Fisher's z.
    pub struct HeterogeneityRow in "heterogeneity", version 1 0,
        unique by (groups, signal, layer, smoothing, contrast);

    /// The groups: `all`, or the problem sets that `--pool` joined.
    groups: String => key(),
    /// Signal, as in `correlations`.
    signal: String => key(),
    /// Layer of the signal, 0-based; null for a signal without layers and for contrasts.
    layer: Option<i16> => number("layer"),
    /// Smoother, as in `correlations`.
    smoothing: String => key(),
    /// `column` for the column itself; else a contrast of a trace's coefficients over layers: the mean over band A or
    /// B, their difference, or the slope over depths from -1 to 1.
    contrast: String => word(CONTRASTS),
    /// Groups with two traces or more.
    n_groups: i32 => number("1"),
    /// Cochran's Q.
    q: f64 => number("1"),
    /// Its p-value by the chi-squared distribution.
    p: f64 => number("1"),
    /// Share of the variation of the groups' means that is between groups.
    i_squared: f64 => number("1"),
    /// Variance between groups, of Fisher's z.
    tau2: f64 => number("1"),
    /// Mean under random effects (`DerSimonian` and Laird 1986), of Fisher's z.
    mean_z: f64 => number("1"),
    /// Its lower bound.
    z_lo: f64 => number("1"),
    /// Its upper bound.
    z_hi: f64 => number("1"),
    /// `tanh(mean_z)`.
    rho: f64 => number("1"),
}
