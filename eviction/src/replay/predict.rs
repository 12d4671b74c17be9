//! How well a measure of a replay tells which policy a free run will favour, within a budget.
//!
//! ```text
//! rho = mean over budgets of Spearman's rho, over policies, of the measure's mean and the accuracy of free runs
//! ```
//!
//! Within a budget: across budgets every measure looks good, since all of them rise with memory. The bootstrap resamples
//! problems, for the measure and the free runs alike; policies are those that were run, not a sample of any.

use std::collections::{BTreeMap, BTreeSet};

use epikv_schemas::{EvictionReplay, EvictionRun};
use epikv_stats::moments::mean;
use epikv_stats::resample::bootstrap;
use epikv_stats::spearman;
use serde::Serialize;

use crate::analysis::cost::{REPLICATES, SEED};

/// Policies of a budget at least.
const LEAST_POLICIES: usize = 3;

/// A measure and how well it predicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The measure.
    pub measure: &'static str,
    /// Budgets at which three policies or more ran both ways.
    pub n_budgets: usize,
    /// Most policies at one of them.
    pub n_policies: usize,
    /// Problems that ran both ways.
    pub n_problems: usize,
    /// Mean over budgets of Spearman's rho over policies; null where constant at every budget.
    pub rho: Option<f64>,
    /// Interval of it, 95 % percentiles over problems.
    pub lo: Option<f64>,
    /// Upper end.
    pub hi: Option<f64>,
}

/// A measure: its name, and its value in a row.
type Measure = (&'static str, fn(&EvictionReplay) -> Option<f64>);

const MEASURES: &[Measure] = &[
    ("label mass at the end", |row| row.mass_end),
    ("label mass over steps", |row| row.mass_mean),
    ("answer survival, clean", |row| row.clean_correct.map(share)),
    ("answer survival, own", |row| row.own_correct.map(share)),
];

fn share(right: bool) -> f64 {
    f64::from(u8::from(right))
}

/// Values of one policy at one budget: measure and free run, by problem.
type Pairs = Vec<(usize, f64, f64)>;

/// Every measure against free runs of the same policies, budgets and problems; empty without any.
pub fn predict(rows: &[EvictionReplay], runs: &[EvictionRun]) -> Vec<Prediction> {
    let mut free: BTreeMap<(&str, &str, &str), Vec<f64>> = BTreeMap::new();
    for run in runs {
        if let (Some(budget), Some(correct)) = (run.budget.as_deref(), run.correct) {
            free.entry((&run.policy, budget, &run.problem_id)).or_default().push(share(correct));
        }
    }
    let problems: BTreeSet<&str> = rows.iter().map(|row| row.problem_id.as_str()).collect();
    let problems: Vec<&str> = problems.into_iter().collect();
    let one = |&(measure, of): &Measure| {
        let mut cells: BTreeMap<&str, BTreeMap<&str, Pairs>> = BTreeMap::new();
        let mut used = BTreeSet::new();
        for row in rows {
            let own = free.get(&(row.policy.as_str(), row.budget.as_str(), row.problem_id.as_str()));
            if let (Some(value), Some(free), Ok(at)) = (of(row), own, problems.binary_search(&row.problem_id.as_str()))
            {
                let mean = free.iter().sum::<f64>() / free.len() as f64;
                cells.entry(&row.budget).or_default().entry(&row.policy).or_default().push((at, value, mean));
                used.insert(at);
            }
        }
        cells.retain(|_, policies| policies.len() >= LEAST_POLICIES);
        let n_policies = cells.values().map(BTreeMap::len).max()?;
        let statistic = |counts: &[u32]| rho(&cells, counts);
        let mut all: Vec<f64> = bootstrap(SEED, REPLICATES, problems.len(), statistic).into_iter().flatten().collect();
        all.sort_by(f64::total_cmp);
        // An interval over the few resamples in which it is defined would say too much.
        let bound =
            |share: f64| (all.len() > REPLICATES / 2).then(|| all[((all.len() - 1) as f64 * share).round() as usize]);
        Some(Prediction {
            measure,
            n_budgets: cells.len(),
            n_policies,
            n_problems: used.len(),
            rho: rho(&cells, &vec![1; problems.len()]),
            lo: bound(0.025),
            hi: bound(0.975),
        })
    };
    MEASURES.iter().filter_map(one).collect()
}

/// The mean over budgets, with problems taken so many times each.
fn rho(cells: &BTreeMap<&str, BTreeMap<&str, Pairs>>, counts: &[u32]) -> Option<f64> {
    let of_budget = |policies: &BTreeMap<&str, Pairs>| {
        let means = policies.values().filter_map(|pairs| {
            let sums = pairs.iter().fold([0.0; 3], |[n, a, b], &(at, measure, free)| {
                let times = f64::from(counts[at]);
                [n + times, a + times * measure, b + times * free]
            });
            (sums[0] > 0.0).then(|| (sums[1] / sums[0], sums[2] / sums[0]))
        });
        let (measures, free): (Vec<f64>, Vec<f64>) = means.unzip();
        (measures.len() >= LEAST_POLICIES).then(|| spearman(&measures, &free)).flatten()
    };
    let all: Vec<f64> = cells.values().filter_map(of_budget).collect();
    mean(&all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::summary::tests::row as run;
    use crate::replay::summary::tests::row;

    #[test]
    fn a_measure_that_ranks_as_free_runs_do_has_rho_one() {
        let (mut rows, mut runs) = (Vec::new(), Vec::new());
        for (at, policy) in ["a", "b", "c", "d"].into_iter().enumerate() {
            for problem in 0..12 {
                let name = format!("p{problem}");
                // Policy `at` keeps at/3 of the mass and is right in 3 at of 12 problems.
                rows.push(row(&name, policy, "30", Some(at as f64 / 3.0), Some(problem < 3 * at)));
                runs.push(run(&name, policy, Some("30"), Some(problem < 3 * at)));
            }
        }
        let found = predict(&rows, &runs);
        let mass = &found[0];
        assert_eq!(
            (mass.measure, mass.n_budgets, mass.n_policies, mass.n_problems),
            ("label mass at the end", 1, 4, 12)
        );
        assert!((mass.rho.expect("varies") - 1.0).abs() < 1e-12 && mass.hi == Some(1.0), "{mass:?}");
        let own = found.iter().find(|one| one.measure == "answer survival, own").expect("measured");
        assert!((own.rho.expect("varies") - 1.0).abs() < 1e-12);
        // Another budget does not help: measures are compared within one.
        let constant: Vec<_> = rows.iter().map(|r| EvictionReplay { mass_end: Some(0.5), ..r.clone() }).collect();
        assert_eq!(predict(&constant, &runs)[0].rho, None);
        assert!(predict(&rows, &[]).is_empty());
    }
}
