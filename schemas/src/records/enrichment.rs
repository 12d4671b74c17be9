//! `enrichment`: which kinds of tokens are important, ranked high, or kept.

crate::record::record! {
    /// One class of tokens in one set of tokens of a problem set a row, against chance. Classes that do not occur are left
    /// out.
    pub struct EnrichmentRow in "enrichment", version 1 1, unique by (dataset, set, column, class);

    /// Problem set of the traces.
    dataset: String => key(),
    /// The important tokens among those with a label (`label`); as many tokens with the largest values of a signal
    /// (`top`); or the tokens that a policy with that score still holds at the end of each trace under the budget,
    /// among the generated tokens that are not protected (`kept`).
    set: String => word(&["label", "top", "kept"]),
    /// The signal, with `@layer=L` where it has a layer; `label` for the important tokens.
    column: String => key(),
    /// Class of the tokens, from their text alone.
    class: String => word(&["newline", "digit", "operator", "variable", "discourse", "other"]),
    /// Traces with a token to compare.
    n_traces: i32 => number("traces"),
    /// Problems of these traces: the units that are drawn and tested; null in files of earlier versions.
    n_problems: Option<i32> => number("problems"),
    /// Tokens compared.
    n_tokens: i64 => number("tokens"),
    /// Compared tokens of the class.
    n_class: i64 => number("tokens"),
    /// Compared tokens in the set.
    n_set: i64 => number("tokens"),
    /// Compared tokens of the class that are in the set.
    n_both: i64 => number("tokens"),
    /// `n_both` by chance: the sum over traces of `n_set n_class / n_tokens`.
    expected: f64 => number("tokens"),
    /// `n_both / expected`; null where `expected` is zero.
    ratio: Option<f64> => number("1"),
    /// Two-sided p-value of the coefficient between class and set under the sets of other problems at matched relative position.
    p_cross: Option<f64> => number("1"),
    /// Two-sided p-value under the trace's own set, shifted around its end: a test of `n_both` with its counts fixed.
    p_shift: Option<f64> => number("1"),
    /// Distance of that coefficient from its mean under the sets of other problems, in standard deviations.
    z_null: Option<f64> => number("1"),
    /// Benjamini-Hochberg of `p_cross` over the classes of the set.
    q_bh: Option<f64> => number("1"),
}
