//! Two policies on the same problems.
//!
//! With one run a problem: exact `McNemar` on the problems that only one of them answers. With more, runs of one problem are
//! not independent: the difference of the two shares of right answers, problem by problem, by an exact sign flip (a paired
//! t test where there are too many unequal differences).
//!
//! Comparisons that were declared before the run (`--primary`) are adjusted by Holm; all the others are exploratory and are
//! adjusted by Benjamini and Hochberg.

use std::collections::BTreeMap;

use epikv_stats::adjust::{benjamini_hochberg, holm};
use epikv_stats::mcnemar::mcnemar;
use epikv_stats::paired::paired_difference;
use serde::Serialize;

/// Below this adjusted p-value two policies are told apart.
pub(crate) const LEVEL: f64 = 0.05;

/// Right or not, by problem and sample.
pub(crate) type Verdicts<'r> = BTreeMap<(&'r str, i32), bool>;

/// A policy against another one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// The other policy, at the same budget or without one.
    pub against: String,
    /// Problems that both graded.
    pub n_problems: u64,
    /// Runs that both graded.
    pub n_pairs: u64,
    /// Runs that are right under the policy only.
    pub wins: u64,
    /// Runs that are right under the other only.
    pub losses: u64,
    /// The test: `mcnemar_exact`, `sign_flip` or `paired_t`.
    pub test: &'static str,
    /// Two-sided p-value.
    pub p: f64,
    /// The p-value adjusted within its family.
    pub p_adjusted: f64,
    /// Whether it was declared before the run.
    pub primary: bool,
    /// What that means.
    pub verdict: String,
}

impl Paired {
    /// The comparison, not adjusted yet; `None` without a run that both graded.
    pub(crate) fn of(own: &Verdicts<'_>, other: &Verdicts<'_>, against: &str, primary: bool) -> Option<Self> {
        let mut problems: BTreeMap<&str, Vec<(bool, bool)>> = BTreeMap::new();
        for (key, own) in own {
            if let Some(other) = other.get(key) {
                problems.entry(key.0).or_default().push((*own, *other));
            }
        }
        let all = || problems.values().flatten();
        let count = |want: (bool, bool)| all().filter(|pair| **pair == want).count() as u64;
        let (n_pairs, wins, losses) = (all().count() as u64, count((true, false)), count((false, true)));
        let (test, p) = if problems.values().all(|runs| runs.len() == 1) {
            ("mcnemar_exact", mcnemar(wins, losses).p_exact)
        } else {
            let share = |of: fn(&(bool, bool)) -> bool| -> Vec<f64> {
                let right = |runs: &Vec<(bool, bool)>| runs.iter().filter(|pair| of(pair)).count() as f64;
                problems.values().map(|runs| right(runs) / runs.len() as f64).collect()
            };
            let difference = paired_difference(&share(|pair| pair.0), &share(|pair| pair.1))?;
            match difference.p_signflip_exact {
                Some(p) => ("sign_flip", p),
                None => ("paired_t", difference.p_t?),
            }
        };
        (n_pairs > 0).then(|| Self {
            against: against.to_owned(),
            n_problems: problems.len() as u64,
            n_pairs,
            wins,
            losses,
            test,
            p,
            p_adjusted: p,
            primary,
            verdict: String::new(),
        })
    }
}

/// Adjusts each family and says what the figures mean.
pub(crate) fn adjust(all: &mut [&mut Paired]) {
    for primary in [true, false] {
        let p: Vec<f64> = all.iter().filter(|one| one.primary == primary).map(|one| one.p).collect();
        let adjusted = if primary { holm(&p) } else { benjamini_hochberg(&p) };
        for (one, p) in all.iter_mut().filter(|one| one.primary == primary).zip(adjusted) {
            one.p_adjusted = p;
            one.verdict = if p >= LEVEL {
                format!("not distinguishable at n={}", one.n_problems)
            } else if one.wins > one.losses {
                format!("better than {}", one.against)
            } else {
                format!("worse than {}", one.against)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(runs: &[(&'static str, i32, bool)]) -> Verdicts<'static> {
        runs.iter().map(|&(problem, sample, right)| ((problem, sample), right)).collect()
    }

    #[test]
    fn one_run_a_problem_is_mcnemar_and_more_are_not() {
        let own = verdicts(&[("a", 0, true), ("b", 0, true), ("c", 0, false), ("d", 0, true)]);
        let other = verdicts(&[("a", 0, false), ("b", 0, false), ("c", 0, true), ("e", 0, true)]);
        let paired = Paired::of(&own, &other, "x", false).expect("three pairs");
        assert_eq!((paired.n_pairs, paired.wins, paired.losses, paired.test), (3, 2, 1, "mcnemar_exact"));
        assert!((paired.p - 1.0).abs() < 1e-12);
        // Two problems, two samples each: shares 1 and 1/2 against 0 and 0; four sign patterns, two as extreme.
        let own = verdicts(&[("a", 0, true), ("a", 1, true), ("b", 0, true), ("b", 1, false)]);
        let none = verdicts(&[("a", 0, false), ("a", 1, false), ("b", 0, false), ("b", 1, false)]);
        let paired = Paired::of(&own, &none, "x", false).expect("four pairs");
        assert_eq!((paired.n_problems, paired.n_pairs, paired.wins, paired.test), (2, 4, 3, "sign_flip"));
        assert!((paired.p - 0.5).abs() < 1e-12);
        assert_eq!(Paired::of(&own, &Verdicts::new(), "x", false), None);
    }

    #[test]
    fn families_are_adjusted_apart() {
        let one = |p: f64, primary: bool| Paired {
            against: "full".to_owned(),
            n_problems: 9,
            n_pairs: 9,
            wins: 0,
            losses: 5,
            test: "mcnemar_exact",
            p,
            p_adjusted: p,
            primary,
            verdict: String::new(),
        };
        let mut all = [one(0.01, true), one(0.03, true), one(0.04, false), one(0.02, false)];
        adjust(&mut all.iter_mut().collect::<Vec<_>>());
        let adjusted = all.each_ref().map(|one| (one.p_adjusted * 1000.0).round() as u64);
        assert_eq!(adjusted, [20, 30, 40, 40]);
        assert_eq!(all[0].verdict, "worse than full");
    }
}
