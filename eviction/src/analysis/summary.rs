//! The figures of an experiment: one group for each policy and budget, each compared with the runs without eviction.

use std::collections::{BTreeMap, BTreeSet};

use epikv_schemas::{EvictionRun, EvictionTiming};
use serde::Serialize;

use crate::analysis::comparison::{Paired, Sets, Verdicts, adjust};
use crate::analysis::drift::Drift;
use crate::analysis::group::{Group, group};
use crate::analysis::order::{order_of_budget, order_of_policy};
use crate::analysis::variance::{Components, components};
use crate::experiment::runs::Runs;
use crate::policy::registry::{FULL, RANDOM};

/// All groups.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The groups.
    pub groups: Vec<Group>,
    /// Problems.
    pub n_problems: usize,
    /// Whether all times were measured on one machine with one kernel, batch and number of threads.
    pub times_comparable: bool,
    /// The margin of equivalence that was declared before the run.
    pub margin: Option<f64>,
    /// Components of the variance of randomised policies; empty where none ran under several seeds.
    pub components: Vec<Components>,
    /// How far recorded signals drifted; empty where none were recorded.
    pub drift: Vec<Drift>,
    /// What could not be run, with the reason.
    pub failures: Vec<String>,
}

/// What the policies are compared with, besides no eviction and `random`.
#[derive(Debug, Clone, Default)]
pub struct Comparisons {
    /// One more policy that every other is compared with.
    pub baseline: Option<String>,
    /// Contrasts declared before the run, as (policy, other policy).
    pub primary: Vec<(String, String)>,
    /// Margin of equivalence that was declared before the run, as a share.
    pub margin: Option<f64>,
}

impl Summary {
    /// Of what an experiment gave. Groups stand in order of budgets, then of the table of policies.
    pub fn of(runs: &Runs, comparisons: &Comparisons) -> Self {
        let mut timings: BTreeMap<(&str, Option<&str>), Vec<&EvictionTiming>> = BTreeMap::new();
        for timing in &runs.timings {
            timings.entry((&timing.policy, timing.budget.as_deref())).or_default().push(timing);
        }
        let mut by_group: BTreeMap<(&str, Option<&str>), Vec<&EvictionRun>> = BTreeMap::new();
        for row in &runs.rows {
            by_group.entry((&row.policy, row.budget.as_deref())).or_default().push(row);
        }
        let verdicts: BTreeMap<(&str, Option<&str>), Verdicts<'_>> = by_group
            .iter()
            .map(|(key, rows)| {
                let graded = rows.iter().filter_map(|row| Some(((row.problem_id.as_str(), row.sample), row.correct?)));
                (*key, graded.collect())
            })
            .collect();
        let sets: Sets<'_> = runs.rows.iter().map(|row| (row.problem_id.as_str(), row.dataset.as_str())).collect();
        let mut keys: Vec<_> = by_group.keys().copied().collect();
        keys.sort_by_key(|(policy, budget)| (order_of_budget(*budget), order_of_policy(policy), *policy));
        let mut groups: Vec<Group> = Vec::new();
        for key in keys {
            let mut group = group(&by_group[&key], timings.get(&key).map_or(&[], Vec::as_slice));
            let mut others: Vec<&str> = vec![FULL, RANDOM];
            others.extend(comparisons.baseline.as_deref());
            let declared = |other: &str| comparisons.primary.iter().any(|(a, b)| a == key.0 && b == other);
            others.extend(comparisons.primary.iter().filter(|(a, _)| a == key.0).map(|(_, b)| b.as_str()));
            for (i, &other) in others.iter().enumerate() {
                if other == key.0 || others[..i].contains(&other) {
                    continue;
                }
                let theirs = verdicts.get(&(other, key.1)).or_else(|| verdicts.get(&(other, None)));
                let paired =
                    theirs.and_then(|theirs| Paired::of(&verdicts[&key], theirs, &sets, other, declared(other)));
                group.versus.extend(paired);
            }
            groups.push(group);
        }
        adjust(&mut groups.iter_mut().flat_map(|group| &mut group.versus).collect::<Vec<_>>(), comparisons.margin);
        // The attention kernel follows from the policy and is its cost; the instruction set behind it is the machine's.
        let instructions =
            |kernel: &'_ str| kernel.split_once(' ').map_or(kernel.to_owned(), |(_, set)| set.to_owned());
        let on = runs.timings.iter().map(|t| (&t.machine, instructions(&t.kernel), t.batch, t.threads));
        let on: BTreeSet<_> = on.collect();
        if on.len() > 1 {
            // Times of several machines say nothing beside each other.
            for group in &mut groups {
                group.time = None;
            }
        }
        let problems: BTreeSet<&str> = runs.rows.iter().map(|row| row.problem_id.as_str()).collect();
        Self {
            groups,
            n_problems: problems.len(),
            times_comparable: on.len() <= 1,
            margin: comparisons.margin,
            components: components(&runs.rows),
            drift: Vec::new(),
            failures: runs.failures.clone(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(problem: &str, policy: &str, budget: Option<&str>, correct: Option<bool>) -> EvictionRun {
        EvictionRun {
            problem_id: problem.to_owned(),
            policy: policy.to_owned(),
            budget: budget.map(str::to_owned),
            sample: 0,
            cell: String::new(),
            dataset: "d".to_owned(),
            composition: "score=recency;protect=prompt+recency;position=logical".to_owned(),
            layers: None,
            needs_attention: false,
            budget_tokens: budget.map(|_| 30),
            outcome: correct.map_or("infeasible", |right| if right { "correct" } else { "wrong" }).to_owned(),
            correct,
            answer: None,
            gold: None,
            finish_reason: None,
            error: None,
            n_prompt: 5,
            n_new: correct.map(|_| 10),
            token_ids: None,
            first_difference: None,
            min_margin: None,
            held_last: None,
            held_steady: None,
            held_mean: correct.map(|_| 20.0),
            held_max: None,
            held_peak: None,
            read_tokens: None,
            peak_kv_bytes: correct.map(|_| 1000),
            allocated_kv_bytes: None,
            kv_byte_steps: correct.map(|_| 200),
            n_evictions: correct.map(|_| 3),
            n_evicted: correct.map(|_| 3),
            certificate: correct.map(|_| true),
            n_protected_lost: None,
            seed: 0,
            temperature: 0.0,
            top_p: 1.0,
        }
    }

    fn runs(n: usize, right: impl Fn(usize) -> bool) -> Runs {
        let name = |i: usize| format!("p{i}");
        let full = (0..n).map(|i| row(&name(i), FULL, None, Some(true)));
        let other = (0..n).map(|i| row(&name(i), "window", Some("30"), Some(right(i))));
        let left_out = row("x", FULL, None, Some(false));
        let infeasible = row("x", "window", Some("30"), None);
        Runs { rows: full.chain(other).chain([left_out, infeasible]).collect(), ..Runs::default() }
    }

    #[test]
    fn groups_by_hand() {
        let summary = Summary::of(&runs(10, |i| i >= 2), &Comparisons::default());
        let [full, window] = &summary.groups[..] else { panic!("two groups") };
        assert_eq!((full.n, full.n_right, full.versus.len()), (11, 10, 0));
        assert_eq!((window.n, window.n_right, window.n_decoded, window.n_evictions), (10, 8, 10, 30));
        assert_eq!(window.outcomes.get("infeasible"), Some(&1));
        assert_eq!((window.protect.as_str(), window.mean_held), ("prompt+recency", Some(20.0)));
        let cost = window.kv_byte_steps_per_right.expect("right answers");
        assert!((cost.ratio - 250.0).abs() < 1e-9, "ten problems, eight right: {cost:?}");
        assert_eq!((window.capped, window.clustered_se), (Some(0.0), None));
        let [paired] = &window.versus[..] else { panic!("against full") };
        assert_eq!((paired.n_pairs, paired.losses, paired.wins), (10, 2, 0));
        assert!((paired.p - 0.5).abs() < 1e-12);
        assert_eq!(paired.verdict, "not distinguishable at n=10");
    }

    #[test]
    fn a_clear_difference_is_called_one() {
        let summary = Summary::of(&runs(10, |i| i >= 7), &Comparisons::default());
        assert_eq!(summary.groups[1].versus[0].verdict, "worse than full");
    }
}
