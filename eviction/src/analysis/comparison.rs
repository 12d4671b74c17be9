//! Two policies on the same problems.
//!
//! With one run a problem: exact `McNemar` on the problems that only one of them answers, and Tango's interval of the
//! difference. With more, runs of one problem are not independent: the difference of the two shares of right answers,
//! problem by problem, by an exact sign flip (a paired t test where there are too many unequal differences), and a bootstrap
//! over problems that is never narrower than Tango's interval without a discordant problem: no interval has width zero.
//!
//! Comparisons that were declared before the run (`--primary`) are adjusted by Holm; all the others are exploratory and are
//! adjusted by Benjamini and Hochberg. Two policies are called equivalent only within a margin that was declared before the
//! run, if the whole interval lies inside it.
//!
//! Problem sets pool by their discordant runs: in each set a discordant run is a fair coin under equality, so the sum over
//! sets is one too, and the pooled test is stratified. Whether the sets agree is a chi-squared test of the share of wins:
//!
//! ```text
//! chi2 = sum_s (b_s - m_s p)^2 / (m_s p (1 - p)),   m_s = b_s + c_s,   p = sum b_s / sum m_s
//! ```

use std::collections::BTreeMap;

use epikv_stats::Confidence;
use epikv_stats::adjust::{benjamini_hochberg, holm};
use epikv_stats::bootstrap::bootstrap_interval;
use epikv_stats::mcnemar::mcnemar;
use epikv_stats::paired::paired_difference;
use epikv_stats::resample::bootstrap;
use epikv_stats::tails::chi_squared_sf;
use epikv_stats::tango::{pairs_for_margin, tango};
use serde::Serialize;

use crate::analysis::cost::{REPLICATES, SEED};

/// Below this adjusted p-value two policies are told apart.
pub(crate) const LEVEL: f64 = 0.05;

/// Probability with which the wanted number of problems finds a difference of the margin.
const POWER: f64 = 0.8;

/// Right or not, by problem and sample.
pub(crate) type Verdicts<'r> = BTreeMap<(&'r str, i32), bool>;

/// The problem set of each problem.
pub(crate) type Sets<'r> = BTreeMap<&'r str, &'r str>;

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
    /// Share of right answers less that of the other.
    pub difference: f64,
    /// Interval of it, 95 %.
    pub lo: Option<f64>,
    /// Upper end.
    pub hi: Option<f64>,
    /// Which interval: `tango`, or `problem_bootstrap` for several runs a problem.
    pub interval: &'static str,
    /// The test: `mcnemar_exact`, `sign_flip` or `paired_t`.
    pub test: &'static str,
    /// Two-sided p-value.
    pub p: f64,
    /// The p-value adjusted within its family.
    pub p_adjusted: f64,
    /// Whether it was declared before the run.
    pub primary: bool,
    /// Whether the whole interval lies within the margin; null without a margin that was declared before the run.
    pub equivalent: Option<bool>,
    /// Problems at which a difference of the margin would be found in four of five runs; null without a margin.
    pub n_for_margin: Option<u64>,
    /// What that means.
    pub verdict: String,
    /// The same by problem set; empty where there is one only.
    pub strata: Vec<Stratum>,
    /// Whether the problem sets agree; null where fewer than two have discordant runs.
    pub heterogeneity: Option<Heterogeneity>,
}

/// Wins and losses in one problem set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stratum {
    /// The problem set.
    pub dataset: String,
    /// Runs that both graded.
    pub n_pairs: u64,
    /// Runs that are right under the policy only.
    pub wins: u64,
    /// Runs that are right under the other only.
    pub losses: u64,
}

/// A test of whether the share of wins among discordant runs is the same in all problem sets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Heterogeneity {
    /// The statistic.
    pub chi2: f64,
    /// Its degrees of freedom: problem sets with discordant runs, less one.
    pub df: u32,
    /// Its p-value.
    pub p: f64,
}

/// Own and other verdicts of each problem.
type Problems<'r> = BTreeMap<&'r str, Vec<(bool, bool)>>;

impl Paired {
    /// The comparison, not adjusted yet; `None` without a run that both graded.
    pub(crate) fn of(
        own: &Verdicts<'_>,
        other: &Verdicts<'_>,
        sets: &Sets<'_>,
        against: &str,
        primary: bool,
    ) -> Option<Self> {
        let mut problems = Problems::new();
        for (key, own) in own {
            if let Some(other) = other.get(key) {
                problems.entry(key.0).or_default().push((*own, *other));
            }
        }
        let (n_pairs, wins, losses) = counts(problems.values());
        let n_problems = problems.len() as u64;
        let once = problems.values().all(|runs| runs.len() == 1);
        let (test, p) =
            if once { ("mcnemar_exact", mcnemar(wins, losses).p_exact) } else { clustered_test(&problems)? };
        let difference = (wins as f64 - losses as f64) / n_pairs.max(1) as f64;
        let bounds = if once { tango(wins, losses, n_pairs, Confidence::P95) } else { over_problems(&problems) };
        let strata = strata(&problems, sets);
        (n_pairs > 0).then(|| Self {
            against: against.to_owned(),
            n_problems,
            n_pairs,
            wins,
            losses,
            difference,
            lo: bounds.map(|bounds| bounds.0),
            hi: bounds.map(|bounds| bounds.1),
            interval: if once { "tango" } else { "problem_bootstrap" },
            test,
            p,
            p_adjusted: p,
            primary,
            equivalent: None,
            n_for_margin: None,
            verdict: String::new(),
            heterogeneity: heterogeneity(&strata),
            strata: if strata.len() > 1 { strata } else { Vec::new() },
        })
    }

    /// Judges the comparison by a margin that was declared before the run.
    fn judge(&mut self, margin: Option<f64>) {
        let told_apart = self.p_adjusted < LEVEL;
        let mut verdict = match (told_apart, self.wins > self.losses) {
            (false, _) => format!("not distinguishable at n={}", self.n_problems),
            (true, true) => format!("better than {}", self.against),
            (true, false) => format!("worse than {}", self.against),
        };
        if let Some(margin) = margin {
            let inside = self.lo.zip(self.hi).is_some_and(|(lo, hi)| lo > -margin && hi < margin);
            let no_worse = self.lo.is_some_and(|lo| lo > -margin);
            let discordant = (self.wins + self.losses) as f64 / self.n_pairs as f64;
            self.equivalent = Some(inside);
            self.n_for_margin = pairs_for_margin(margin, discordant, LEVEL, POWER);
            let points = 100.0 * margin;
            let more = match (inside, no_worse, told_apart) {
                (true, ..) => format!(", equivalent within {points} points"),
                (false, true, _) => format!(", at most {points} points worse"),
                (false, false, true) => String::new(),
                (false, false, false) => format!(", not shown equivalent within {points} points"),
            };
            verdict.push_str(&more);
        }
        self.verdict = verdict;
    }
}

/// Runs, wins and losses.
fn counts<'a>(problems: impl Iterator<Item = &'a Vec<(bool, bool)>>) -> (u64, u64, u64) {
    problems.flatten().fold((0, 0, 0), |(n, wins, losses), &(own, other)| {
        (n + 1, wins + u64::from(own && !other), losses + u64::from(other && !own))
    })
}

/// The test for several runs a problem.
fn clustered_test(problems: &Problems<'_>) -> Option<(&'static str, f64)> {
    let share = |of: fn(&(bool, bool)) -> bool| -> Vec<f64> {
        let right = |runs: &Vec<(bool, bool)>| runs.iter().filter(|pair| of(pair)).count() as f64;
        problems.values().map(|runs| right(runs) / runs.len() as f64).collect()
    };
    let difference = paired_difference(&share(|pair| pair.0), &share(|pair| pair.1))?;
    match difference.p_signflip_exact {
        Some(p) => Some(("sign_flip", p)),
        None => Some(("paired_t", difference.p_t?)),
    }
}

/// The interval for several runs a problem: percentiles of a bootstrap over problems, at least as wide as Tango's for
/// so many problems without a discordant one.
fn over_problems(problems: &Problems<'_>) -> Option<(f64, f64)> {
    let of_problem = problems.values().map(|runs| {
        let (n, wins, losses) = counts(std::iter::once(runs));
        (wins as f64 - losses as f64, n as f64)
    });
    let of_problem: Vec<(f64, f64)> = of_problem.collect();
    let mean = |counts: &[u32]| {
        let (sum, n) = of_problem
            .iter()
            .zip(counts)
            .fold((0.0, 0.0), |(sum, n), (one, &times)| (sum + one.0 * f64::from(times), n + one.1 * f64::from(times)));
        (n > 0.0).then(|| sum / n)
    };
    let estimate = mean(&vec![1; of_problem.len()])?;
    let replicates: Vec<f64> = bootstrap(SEED, REPLICATES, of_problem.len(), mean).into_iter().flatten().collect();
    let (lo, hi) = bootstrap_interval(estimate, &replicates, &[], Confidence::P95)?.percentile;
    let (least, most) = tango(0, 0, of_problem.len() as u64, Confidence::P95)?;
    Some((lo.min(estimate + least).max(-1.0), hi.max(estimate + most).min(1.0)))
}

fn strata(problems: &Problems<'_>, sets: &Sets<'_>) -> Vec<Stratum> {
    let mut by_set: BTreeMap<&str, Vec<&Vec<(bool, bool)>>> = BTreeMap::new();
    for (problem, runs) in problems {
        by_set.entry(sets.get(problem).copied().unwrap_or_default()).or_default().push(runs);
    }
    let one = |(dataset, runs): (&str, Vec<&Vec<(bool, bool)>>)| {
        let (n_pairs, wins, losses) = counts(runs.into_iter());
        Stratum { dataset: dataset.to_owned(), n_pairs, wins, losses }
    };
    by_set.into_iter().map(one).collect()
}

fn heterogeneity(strata: &[Stratum]) -> Option<Heterogeneity> {
    let discordant = strata.iter().map(|s| (s.wins as f64, (s.wins + s.losses) as f64)).filter(|(_, m)| *m > 0.0);
    let discordant: Vec<(f64, f64)> = discordant.collect();
    let (wins, all) = discordant.iter().fold((0.0, 0.0), |(b, m), one| (b + one.0, m + one.1));
    let df = u32::try_from(discordant.len()).ok()?.checked_sub(1).filter(|df| *df > 0)?;
    let share = wins / all;
    // With wins or losses alone all sets say the same.
    let chi2 = if share <= 0.0 || share >= 1.0 {
        0.0
    } else {
        discordant.iter().map(|(b, m)| (b - m * share).powi(2) / (m * share * (1.0 - share))).sum()
    };
    Some(Heterogeneity { chi2, df, p: chi_squared_sf(chi2, df)? })
}

/// Adjusts each family and says what the figures mean.
pub(crate) fn adjust(all: &mut [&mut Paired], margin: Option<f64>) {
    for primary in [true, false] {
        let p: Vec<f64> = all.iter().filter(|one| one.primary == primary).map(|one| one.p).collect();
        let adjusted = if primary { holm(&p) } else { benjamini_hochberg(&p) };
        for (one, p) in all.iter_mut().filter(|one| one.primary == primary).zip(adjusted) {
            one.p_adjusted = p;
            one.judge(margin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(runs: &[(&'static str, i32, bool)]) -> Verdicts<'static> {
        runs.iter().map(|&(problem, sample, right)| ((problem, sample), right)).collect()
    }

    fn paired(own: &Verdicts<'_>, other: &Verdicts<'_>) -> Option<Paired> {
        Paired::of(own, other, &Sets::new(), "x", false)
    }

    #[test]
    fn one_run_a_problem_is_mcnemar_and_more_are_not() {
        let own = verdicts(&[("a", 0, true), ("b", 0, true), ("c", 0, false), ("d", 0, true)]);
        let other = verdicts(&[("a", 0, false), ("b", 0, false), ("c", 0, true), ("e", 0, true)]);
        let once = paired(&own, &other).expect("three pairs");
        assert_eq!((once.n_pairs, once.wins, once.losses, once.test), (3, 2, 1, "mcnemar_exact"));
        assert!((once.p - 1.0).abs() < 1e-12 && (once.difference - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((once.interval, once.lo.zip(once.hi)), ("tango", tango(2, 1, 3, Confidence::P95)));
        // Two problems, two samples each: shares 1 and 1/2 against 0 and 0; four sign patterns, two as extreme.
        let own = verdicts(&[("a", 0, true), ("a", 1, true), ("b", 0, true), ("b", 1, false)]);
        let none = verdicts(&[("a", 0, false), ("a", 1, false), ("b", 0, false), ("b", 1, false)]);
        let more = paired(&own, &none).expect("four pairs");
        assert_eq!((more.n_problems, more.n_pairs, more.wins, more.test), (2, 4, 3, "sign_flip"));
        assert!((more.p - 0.5).abs() < 1e-12);
        assert_eq!(paired(&own, &Verdicts::new()), None);
    }

    #[test]
    fn equal_runs_are_no_proof_of_equality() {
        let names: Vec<String> = (0..30).map(|i| format!("p{i}")).collect();
        let all = |samples: i32| -> Verdicts<'_> {
            names.iter().flat_map(|name| (0..samples).map(move |s| ((name.as_str(), s), true))).collect()
        };
        for samples in [1, 4] {
            let mut same = paired(&all(samples), &all(samples)).expect("pairs");
            assert!(same.lo.is_some_and(|lo| lo < -0.11) && same.hi.is_some_and(|hi| hi > 0.11), "{same:?}");
            same.judge(Some(0.05));
            assert_eq!(same.equivalent, Some(false));
            assert_eq!(same.verdict, "not distinguishable at n=30, not shown equivalent within 5 points");
            assert!(same.n_for_margin.is_some_and(|n| n > 100), "{same:?}");
            same.judge(Some(0.2));
            assert_eq!((same.equivalent, same.verdict.contains("equivalent within 20 points")), (Some(true), true));
            same.judge(None);
            assert_eq!(same.verdict, "not distinguishable at n=30");
        }
    }

    #[test]
    fn problem_sets_are_told_apart() {
        let own = verdicts(&[("a", 0, true), ("b", 0, true), ("c", 0, false), ("d", 0, false), ("e", 0, true)]);
        let other = verdicts(&[("a", 0, false), ("b", 0, false), ("c", 0, true), ("d", 0, true), ("e", 0, true)]);
        let sets = Sets::from([("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"), ("e", "y")]);
        let paired = Paired::of(&own, &other, &sets, "full", false).expect("pairs");
        assert_eq!((paired.wins, paired.losses), (2, 2), "together nothing is seen");
        let of = |i: usize| (paired.strata[i].dataset.as_str(), paired.strata[i].wins, paired.strata[i].losses);
        assert_eq!((of(0), of(1)), (("x", 2, 0), ("y", 0, 2)));
        // p = 1/2, two sets of two: 2 (1)^2 / (2/4) = 4.
        let heterogeneity = paired.heterogeneity.expect("two sets");
        assert!((heterogeneity.chi2 - 4.0).abs() < 1e-12 && heterogeneity.df == 1);
        assert!((heterogeneity.p - 0.045_500_263_896).abs() < 1e-9);
        let one = Paired::of(&own, &other, &Sets::new(), "full", false).expect("pairs");
        assert!(one.strata.is_empty() && one.heterogeneity.is_none());
    }

    #[test]
    fn families_are_adjusted_apart() {
        let one = |p: f64, primary: bool| {
            let own = verdicts(&[("a", 0, false)]);
            Paired { p, primary, losses: 5, ..Paired::of(&own, &own, &Sets::new(), "full", false).expect("a pair") }
        };
        let mut all = [one(0.01, true), one(0.03, true), one(0.04, false), one(0.02, false)];
        adjust(&mut all.iter_mut().collect::<Vec<_>>(), None);
        let adjusted = all.each_ref().map(|one| (one.p_adjusted * 1000.0).round() as u64);
        assert_eq!(adjusted, [20, 30, 40, 40]);
        assert_eq!(all[0].verdict, "worse than full");
    }
}
