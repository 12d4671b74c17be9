//! Variance of randomised policies: the parts from problems, from random draws and from the sampling of tokens.
//!
//! With `y` right or not of problem `p` under eviction seed `e` and sample `s`, `E` seeds and `S` samples, problem by problem:
//!
//! ```text
//! MS_e  = S sum_e (y_e - y)^2 / (E - 1)          MS_s = E sum_s (y_s - y)^2 / (S - 1)
//! MS_es = sum (y_es - y_e - y_s + y)^2 / ((E - 1)(S - 1))
//! both = MS_es    eviction = (MS_e - MS_es) / S    sampling = (MS_s - MS_es) / E
//! problem = var_p(y_p) - eviction / E - sampling / S - both / (E S)
//! ```
//!
//! averaged over problems. With one sample the interaction cannot be told from the draws and is in `eviction`. Estimates by
//! moments may come out below zero, which says that the part is small; they are given as they come.
//!
//! # References
//!
//! Searle, Casella & `McCulloch` 1992, *Variance Components*, chapter 4 (the two-way crossed design).

use std::collections::BTreeMap;

use epikv_schemas::EvictionRun;
use serde::Serialize;

use crate::policy::parse::NamedPolicy;

/// Components of the variance of right or not, for one policy that draws at one budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Components {
    /// The policy without its seed.
    pub policy: String,
    /// The budget.
    pub budget: Option<String>,
    /// Eviction seeds.
    pub n_seeds: usize,
    /// Samples of a problem.
    pub n_samples: usize,
    /// Problems that have all of them.
    pub n_problems: usize,
    /// Between problems; null for one problem.
    pub problem: Option<f64>,
    /// Between eviction seeds of a problem.
    pub eviction: f64,
    /// Between samples of a problem; null for one sample.
    pub sampling: Option<f64>,
    /// What draws and samples do together; null for one sample.
    pub both: Option<f64>,
}

/// Seed, sample and verdict of each run of a problem.
type Cells = BTreeMap<(u32, i32), f64>;

/// The components of every policy that ran under two seeds or more.
pub(crate) fn components(rows: &[EvictionRun]) -> Vec<Components> {
    let mut groups: BTreeMap<(String, Option<String>), BTreeMap<&str, Cells>> = BTreeMap::new();
    let mut names: BTreeMap<&str, Option<(String, u32)>> = BTreeMap::new();
    for row in rows {
        let name = names.entry(&row.policy).or_insert_with(|| without_seed(&row.policy));
        if let (Some((policy, seed)), Some(correct)) = (name, row.correct) {
            let problems = groups.entry((policy.clone(), row.budget.clone())).or_default();
            problems.entry(&row.problem_id).or_default().insert((*seed, row.sample), f64::from(u8::from(correct)));
        }
    }
    groups.into_iter().filter_map(|((policy, budget), problems)| of(policy, budget, problems)).collect()
}

/// The name of a policy that draws with the seed 0, and its own seed.
fn without_seed(name: &str) -> Option<(String, u32)> {
    let policy: NamedPolicy = name.parse().ok()?;
    policy.policy.draws().then(|| (policy.with_seed(0).name, policy.policy.seed))
}

fn of(policy: String, budget: Option<String>, mut problems: BTreeMap<&str, Cells>) -> Option<Components> {
    let of_all = |of: fn(&(u32, i32)) -> i64| -> usize {
        let all = problems.values().flat_map(|cells| cells.keys().map(of));
        all.collect::<std::collections::BTreeSet<_>>().len()
    };
    let (e, s) = (of_all(|key| i64::from(key.0)), of_all(|key| i64::from(key.1)));
    problems.retain(|_, cells| cells.len() == e * s);
    if e < 2 || problems.is_empty() {
        return None;
    }
    let (n, means) = (problems.len() as f64, problems.values().map(|cells| mean(cells.values())).collect::<Vec<_>>());
    let (mut ms_e, mut ms_s, mut ms_es) = (0.0, 0.0, 0.0);
    for (cells, &all) in problems.values().zip(&means) {
        let margin = |of: &dyn Fn(&(u32, i32)) -> i64| {
            let mut sums: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
            for (key, y) in cells {
                sums.entry(of(key)).or_default().push(*y);
            }
            sums.into_iter().map(|(key, y)| (key, mean(y.iter()))).collect::<BTreeMap<i64, f64>>()
        };
        let (by_seed, by_sample) = (margin(&|key| i64::from(key.0)), margin(&|key| i64::from(key.1)));
        let squares = |means: &BTreeMap<i64, f64>| means.values().map(|y| (y - all).powi(2)).sum::<f64>();
        ms_e += s as f64 * squares(&by_seed) / (e - 1) as f64 / n;
        if s > 1 {
            ms_s += e as f64 * squares(&by_sample) / (s - 1) as f64 / n;
            let rest = cells.iter().map(|((seed, sample), y)| {
                (y - by_seed[&i64::from(*seed)] - by_sample[&i64::from(*sample)] + all).powi(2)
            });
            ms_es += rest.sum::<f64>() / ((e - 1) * (s - 1)) as f64 / n;
        }
    }
    let (eviction, sampling) = ((ms_e - ms_es) / s as f64, (ms_s - ms_es) / e as f64);
    let between = (means.len() > 1).then(|| {
        let all = mean(means.iter());
        means.iter().map(|y| (y - all).powi(2)).sum::<f64>() / (n - 1.0)
    });
    let sampled = s > 1;
    let within = eviction / e as f64 + if sampled { sampling / s as f64 + ms_es / (e * s) as f64 } else { 0.0 };
    Some(Components {
        policy,
        budget,
        n_seeds: e,
        n_samples: s,
        n_problems: means.len(),
        problem: between.map(|between| between - within),
        eviction,
        sampling: sampled.then_some(sampling),
        both: sampled.then_some(ms_es),
    })
}

fn mean<'a>(values: impl ExactSizeIterator<Item = &'a f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(rows: &[&[f64]]) -> Cells {
        let all = rows
            .iter()
            .enumerate()
            .flat_map(|(e, row)| row.iter().enumerate().map(move |(s, y)| ((e as u32, s as i32), *y)));
        all.collect()
    }

    #[test]
    fn by_hand() {
        // Problem a: seeds differ, samples do not; problem b: all right.
        let problems =
            BTreeMap::from([("a", cells(&[&[1.0, 1.0], &[0.0, 0.0]])), ("b", cells(&[&[1.0, 1.0], &[1.0, 1.0]]))]);
        let got = of("random".to_owned(), None, problems).expect("two seeds");
        // MS_e = (2 x 1/2 + 0)/2 = 1/2, MS_s = MS_es = 0; problem means 1/2 and 1.
        assert!((got.eviction - 0.25).abs() < 1e-12, "{got:?}");
        assert_eq!((got.sampling, got.both), (Some(0.0), Some(0.0)));
        assert!((got.problem.expect("two problems") - (0.125 - 0.125)).abs() < 1e-12);
    }

    #[test]
    fn one_sample_leaves_the_interaction_in_the_draws() {
        let problems = BTreeMap::from([("a", cells(&[&[1.0], &[0.0]])), ("b", cells(&[&[0.0], &[0.0]]))]);
        let got = of("random".to_owned(), None, problems).expect("two seeds");
        assert!((got.eviction - 0.25).abs() < 1e-12 && got.sampling.is_none() && got.both.is_none());
        assert!((got.problem.expect("two problems") - (0.125 - 0.125)).abs() < 1e-12);
        assert_eq!(of("random".to_owned(), None, BTreeMap::from([("a", cells(&[&[1.0, 0.0]]))])), None);
    }

    #[test]
    fn seeds_are_part_of_the_name_of_a_policy_that_draws() {
        assert_eq!(without_seed("random;seed=3"), Some(("random".to_owned(), 3)));
        assert_eq!(without_seed("full-jitter"), Some(("full-jitter".to_owned(), 0)));
        assert_eq!((without_seed("epikv"), without_seed("unknown")), (None, None));
    }
}
