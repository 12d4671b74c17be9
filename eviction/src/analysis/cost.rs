//! Cost of a right answer: a sum over generations, divided by the number of right answers.
//!
//! ```text
//! cost = sum over problems of what was spent / sum over problems of right answers
//! ```
//!
//! A ratio of sums, not a mean of ratios: a problem without a right answer costs too. It is undefined without any right
//! answer. The interval resamples whole problems; a resample without a right answer costs infinitely much, and a bound that
//! falls among those is undefined.

use epikv_stats::resample::bootstrap;
use serde::Serialize;

/// Resamples of an interval.
pub(crate) const REPLICATES: usize = 2000;

/// Key of the random numbers of all intervals.
pub(crate) const SEED: u64 = 0x636f_7374;

/// A cost for each right answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// The ratio.
    pub ratio: f64,
    /// Lower bound, 95 % percentile interval over problems.
    pub lo: Option<f64>,
    /// Upper bound; null where too many resamples have no right answer.
    pub hi: Option<f64>,
}

impl Cost {
    /// Of problems as (spent, right answers); `None` without a right answer.
    pub(crate) fn of(problems: &[(f64, u64)]) -> Option<Self> {
        let ratio = |counts: &[u32]| {
            let (spent, right) = problems.iter().zip(counts).fold((0.0, 0), |(spent, right), (problem, &n)| {
                (spent + problem.0 * f64::from(n), right + problem.1 * u64::from(n))
            });
            (right > 0).then(|| spent / right as f64)
        };
        let estimate = ratio(&vec![1; problems.len()])?;
        let all = bootstrap(SEED, REPLICATES, problems.len(), ratio);
        let mut sorted: Vec<f64> = all.into_iter().map(|one| one.unwrap_or(f64::INFINITY)).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let bound = sorted[((sorted.len() - 1) as f64 * share).round() as usize];
            (problems.len() > 1 && bound.is_finite()).then_some(bound)
        };
        Some(Self { ratio: estimate, lo: at(0.025), hi: at(0.975) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_costs_too() {
        let cost = Cost::of(&[(10.0, 1), (30.0, 0), (20.0, 2)]).expect("right answers");
        assert!((cost.ratio - 20.0).abs() < 1e-12);
        assert_eq!(Cost::of(&[(10.0, 0), (30.0, 0)]), None);
        assert_eq!(Cost::of(&[]), None);
    }

    #[test]
    fn bounds_hold_the_ratio_and_may_be_open_above() {
        let many: Vec<(f64, u64)> = (0..60).map(|i| (f64::from(10 + i % 7), u64::from(i % 3 != 0))).collect();
        let cost = Cost::of(&many).expect("right answers");
        let (lo, hi) = (cost.lo.expect("many"), cost.hi.expect("many"));
        assert!(lo < cost.ratio && cost.ratio < hi && hi / lo < 2.0, "{cost:?}");
        // One of three is right: 30 % of resamples have none.
        let few = Cost::of(&[(1.0, 1), (1.0, 0), (1.0, 0)]).expect("one is right");
        assert_eq!((few.lo.is_some(), few.hi), (true, None));
    }
}
