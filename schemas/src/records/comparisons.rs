//! `comparisons`: two signals against the same labels.

crate::record::record! {
    /// Two signals on one problem set a row: does the first rank the labels better than the second? Paired over problems,
    /// with three tests for dependent correlations.
    pub struct ComparisonRow in "comparisons", version 1 1, unique by (dataset, column_a, column_b);

    /// Problem set of the traces.
    dataset: String => key(),
    /// A signal of the model, with `@layer=L` and `@smooth=S` where it has a layer or is smoothed, and `-` before it
    /// where its sign is reversed.
    column_a: String => key(),
    /// The second, in the same form.
    column_b: String => key(),
    /// Traces in which both coefficients are defined.
    n_traces: i32 => number("traces"),
    /// Problems of these traces: the units that are drawn and tested; null in files of earlier versions.
    n_problems: Option<i32> => number("problems"),
    /// Labelled tokens of these traces at which both signals have a value.
    n_tokens: i64 => number("tokens"),
    /// Rho within traces of the first with the labels.
    rho_a: Option<f64> => number("1"),
    /// Rho within traces of the second.
    rho_b: Option<f64> => number("1"),
    /// Rho within traces between the two.
    rho_ab: Option<f64> => number("1"),
    /// Mean over problems of the difference of Fisher's z, first less second.
    difference: Option<f64> => number("1"),
    /// Its lower bound by the bootstrap over problems (`BCa`).
    boot_lo: Option<f64> => number("1"),
    /// Its upper bound.
    boot_hi: Option<f64> => number("1"),
    /// Problems in which the first has the larger coefficient.
    n_larger: i32 => number("problems"),
    /// Two-sided p-value of Wilcoxon's signed-rank test of the differences.
    p_signed_rank: Option<f64> => number("1"),
    /// Two-sided p-value of the exact sign-flip test of their mean; null above 40 problems.
    p_sign_flip: Option<f64> => number("1"),
    /// Williams' t on `n_problems` units (Steiger 1980, equation 7); null for three problems or fewer.
    williams_t: Option<f64> => number("1"),
    /// Its two-sided p-value, `n_problems - 3` degrees of freedom.
    williams_p: Option<f64> => number("1"),
    /// z of Meng, Rosenthal and Rubin (1992).
    meng_z: Option<f64> => number("1"),
    /// Its two-sided p-value.
    meng_p: Option<f64> => number("1"),
    /// z of Steiger (1980, equation 14).
    steiger_z: Option<f64> => number("1"),
    /// Its two-sided p-value.
    steiger_p: Option<f64> => number("1"),
}
