//! What a run says of a claim: one rule for all claims.
//!
//! A claim speaks of every part, a figure with its 95 % interval, such as two policies on one problem set at one budget.
//!
//! | verdict | when |
//! | --- | --- |
//! | `holds` | the intervals of all parts lie on the claim's side |
//! | `does not hold here` | the interval of a part lies on the other side |
//! | `contradicted` | the same, and model, problem set and budget of that part are the claim's own |
//! | `unequal: ..` | the two policies differ in what the claim holds equal |
//! | `not distinguishable` | anything else |
//! | `not measured` | the run has no part |
//!
//! A decision needs a p-value below 5 % after Holm over all claims of the page. For "all parts" it is the largest of the
//! parts (an intersection-union test), for "a part" the smallest times the number of parts (Bonferroni).

use epikv_stats::adjust::holm;
use serde::{Deserialize, Serialize};

use crate::claims::part::{Part, Says, Unequal};

/// Level of the adjusted p-values.
const LEVEL: f64 = 0.05;

/// The runs that a claim is about. An empty list means any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// Part of the model's name.
    pub model: String,
    /// Problem sets.
    #[serde(default)]
    pub datasets: Vec<String>,
    /// Budgets as typed.
    #[serde(default)]
    pub budgets: Vec<String>,
}

impl Own {
    fn includes(&self, model: &str, part: &Part) -> bool {
        let budget = part.budget.as_ref().is_some_and(|budget| self.budgets.contains(budget));
        model.contains(&self.model)
            && (self.datasets.is_empty() || self.datasets.contains(&part.dataset))
            && (self.budgets.is_empty() || budget)
    }
}

/// What a run says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every part lies on the claim's side.
    Holds,
    /// A part lies on the other side.
    DoesNotHold,
    /// A part of the claim's own model, problem set and budget lies on the other side.
    Contradicted,
    /// The policies are not comparable.
    Unequal(Unequal),
    /// Neither side.
    NotDistinguishable,
    /// The run has no figure for it.
    NotMeasured,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold here",
            Self::Contradicted => "contradicted",
            Self::Unequal(Unequal::Scope) => "unequal: scope",
            Self::Unequal(Unequal::Protection) => "unequal: protection",
            Self::Unequal(Unequal::Held) => "unequal: held",
            Self::NotDistinguishable => "not distinguishable",
            Self::NotMeasured => "not measured",
        }
    }

    /// Whether it says yes or no.
    pub fn is_decided(self) -> bool {
        matches!(self, Self::Holds | Self::DoesNotHold | Self::Contradicted)
    }
}

/// A verdict and the p-value behind it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Two-sided p-value of the side that the figures lie on; null where nothing was measured.
    pub p: Option<f64>,
    /// The same by Holm over the claims of the page.
    pub p_holm: Option<f64>,
}

/// A claim as the rule sees it.
#[derive(Debug, Clone, Copy)]
pub struct Tested<'c> {
    /// What it says of each part.
    pub says: Says,
    /// The runs that it is about.
    pub own: &'c Own,
    /// The parts that a run has.
    pub parts: &'c [Part],
}

/// p-values for "all parts on the claim's side" and for "a part on the other side".
fn sides(claim: &Tested<'_>) -> (f64, f64) {
    let sides = claim.parts.iter().map(|part| part.p_sides(claim.says));
    let (all, any) = sides.fold((0.0_f64, 1.0_f64), |(all, any), side| (all.max(side.0), any.min(side.1)));
    (all, (any * claim.parts.len() as f64).min(1.0))
}

/// The verdicts of the claims of a page on a run of a model, `[claims]`.
pub fn judge(model: &str, claims: &[Tested<'_>]) -> Vec<Judged> {
    let comparable = |claim: &Tested<'_>| claim.parts.iter().all(|part| part.unequal.is_none());
    let tested = |claim: &&Tested<'_>| !claim.parts.is_empty() && comparable(claim);
    let p: Vec<f64> = claims.iter().filter(tested).map(|claim| sides(claim)).map(|(all, any)| all.min(any)).collect();
    let mut adjusted = p.iter().copied().zip(holm(&p));
    let of = |claim: &Tested<'_>| {
        if let Some(unequal) = claim.parts.iter().find_map(|part| part.unequal) {
            return Judged { verdict: Verdict::Unequal(unequal), p: None, p_holm: None };
        }
        let Some((p, p_holm)) = (!claim.parts.is_empty()).then(|| adjusted.next()).flatten() else {
            return Judged { verdict: Verdict::NotMeasured, p: None, p_holm: None };
        };
        let (all, any) = sides(claim);
        let is_own = |part: &&Part| claim.own.includes(model, part) && part.p_sides(claim.says).1 < LEVEL;
        let verdict = match p_holm < LEVEL {
            true if all < any => Verdict::Holds,
            true if claim.parts.iter().any(|part| is_own(&part)) => Verdict::Contradicted,
            true => Verdict::DoesNotHold,
            false => Verdict::NotDistinguishable,
        };
        Judged { verdict, p: Some(p), p_holm: Some(p_holm) }
    };
    claims.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::part::Test;

    fn part(lo: f64, hi: f64, p: f64) -> Part {
        Part {
            dataset: "math500".to_owned(),
            budget: Some("1024".to_owned()),
            of: String::new(),
            estimate: f64::midpoint(lo, hi),
            lo,
            hi,
            test: Test::Exact { p },
            n: 20,
            counts: String::new(),
            unequal: None,
        }
    }

    fn own() -> Own {
        Own { model: "8B".to_owned(), datasets: vec!["math500".to_owned()], budgets: vec!["1024".to_owned()] }
    }

    fn verdicts(model: &str, claims: &[(Says, Vec<Part>)]) -> Vec<Verdict> {
        let own = own();
        let tested: Vec<Tested<'_>> =
            claims.iter().map(|(says, parts)| Tested { says: *says, own: &own, parts }).collect();
        judge(model, &tested).into_iter().map(|judged| judged.verdict).collect()
    }

    #[test]
    fn each_rule_gives_each_verdict() {
        let one = |model, says, lo, hi, p| verdicts(model, &[(says, vec![part(lo, hi, p)])])[0];
        for (says, holds, not, neither) in [
            (Says::Above(0.0), (0.1, 0.3), (-0.3, -0.1), (-0.1, 0.1)),
            (Says::Below(0.0), (-0.3, -0.1), (0.1, 0.3), (-0.1, 0.1)),
            (Says::Between(-0.05, 0.05), (-0.02, 0.02), (0.1, 0.2), (-0.01, 0.2)),
        ] {
            assert_eq!(one("tiny", says, holds.0, holds.1, 0.001), Verdict::Holds, "{says:?}");
            assert_eq!(one("tiny", says, not.0, not.1, 0.001), Verdict::DoesNotHold, "{says:?}");
            assert_eq!(one("an 8B", says, not.0, not.1, 0.001), Verdict::Contradicted, "{says:?}");
            assert_eq!(one("an 8B", says, neither.0, neither.1, 0.5), Verdict::NotDistinguishable, "{says:?}");
        }
        assert_eq!(verdicts("tiny", &[(Says::Above(0.0), vec![])]), [Verdict::NotMeasured]);
        let other_budget = Part { budget: Some("2048".to_owned()), ..part(-0.3, -0.1, 0.001) };
        assert_eq!(verdicts("an 8B", &[(Says::Above(0.0), vec![other_budget])]), [Verdict::DoesNotHold]);
        let unequal = Part { unequal: Some(Unequal::Scope), ..part(0.1, 0.3, 0.001) };
        assert_eq!(verdicts("an 8B", &[(Says::Above(0.0), vec![unequal])]), [Verdict::Unequal(Unequal::Scope)]);
    }

    #[test]
    fn every_part_counts_and_the_page_pays_for_its_size() {
        let (above, below, open) = (part(0.1, 0.3, 0.001), part(-0.3, -0.1, 0.001), part(-0.1, 0.3, 0.4));
        let says = Says::Above(0.0);
        let of = |parts: &[&Part]| verdicts("tiny", &[(says, parts.iter().copied().cloned().collect())])[0];
        assert_eq!(of(&[&above, &above]), Verdict::Holds);
        assert_eq!(of(&[&above, &open]), Verdict::NotDistinguishable);
        assert_eq!(of(&[&above, &open, &below]), Verdict::DoesNotHold);
        // A part on the other side pays for the number of parts that were looked at.
        let weak = part(-0.3, -0.01, 0.03);
        assert_eq!(of(&[&weak]), Verdict::DoesNotHold);
        assert_eq!(of(&[&weak, &open]), Verdict::NotDistinguishable);
        // 0.03 alone is below 5 %, beside another claim it is not.
        let two = verdicts("tiny", &[(says, vec![weak.clone()]), (says, vec![open.clone()])]);
        assert_eq!(two, [Verdict::NotDistinguishable; 2]);
        // A claim that was not measured costs nothing.
        let two = verdicts("tiny", &[(says, vec![weak]), (says, vec![])]);
        assert_eq!(two, [Verdict::DoesNotHold, Verdict::NotMeasured]);
    }
}
