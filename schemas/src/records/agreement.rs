//! `agreement`: whether two scores keep the same tokens.

crate::record::record! {
    /// Two scores over the tokens of one trace a row: as rankings, and by the tokens that each would keep under a budget.
    /// Prompt and newest tokens, which every policy protects, are left out.
    pub struct AgreementRow in "agreement", version 1 0, unique by (trace_id, score_a, score_b, budget);

    /// Name of the trace.
    trace_id: String => key(),
    /// Problem set of the trace.
    dataset: String => key(),
    /// A score, as `epikv signals` lists them.
    score_a: String => key(),
    /// The second, in the same form.
    score_b: String => key(),
    /// The budget, as typed.
    budget: String => key(),
    /// Tokens compared.
    n: i32 => number("tokens"),
    /// Tokens that the budget keeps of them.
    k: i32 => number("tokens"),
    /// Spearman's rho; null where a score is constant.
    spearman: Option<f64> => number("1"),
    /// Kendall's tau-b; null where a score is constant.
    kendall: Option<f64> => number("1"),
    /// Tokens that both keep; null where the budget keeps none.
    overlap: Option<i32> => number("tokens"),
    /// Share of the kept tokens that both keep: overlap at k.
    overlap_share: Option<f64> => number("1"),
    /// `overlap / (2k - overlap)`.
    jaccard: Option<f64> => number("1"),
    /// `k / n`: the overlap share of two unrelated scores.
    chance: Option<f64> => number("1"),
    /// Chance of this overlap or a larger one for two random sets.
    hypergeom_p: Option<f64> => number("1"),
}
