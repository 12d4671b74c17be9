//! The figures of an experiment: one group for each policy and budget, each compared with the runs without eviction.

use std::collections::BTreeMap;

use epikv_schemas::EvictionRun;
use epikv_stats::Confidence;
use epikv_stats::mcnemar::mcnemar;
use epikv_stats::proportion::wilson;
use serde::Serialize;

use crate::experiment::Runs;
use crate::outcome::Outcome;
use crate::registry::FULL;

/// Below this p-value two policies are told apart.
const LEVEL: f64 = 0.05;

/// All groups, in the order in which they ran.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The groups.
    pub groups: Vec<Group>,
    /// Problems.
    pub n_problems: usize,
    /// What could not be run, with the reason.
    pub failures: Vec<String>,
}

/// One policy at one budget. Means are over the problems that were decoded; undefined is null.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// Policy.
    pub policy: String,
    /// All its parts.
    pub composition: String,
    /// What it protects.
    pub protect: String,
    /// Position mode.
    pub position: String,
    /// Layers that its score reads, where it does not read all or none.
    pub layers: Option<String>,
    /// Whether it needs attention weights.
    pub needs_attention: bool,
    /// Budget as asked for; null where it evicts nothing.
    pub budget: Option<String>,
    /// Mean budget in tokens a layer.
    pub mean_budget_tokens: Option<f64>,
    /// Problems that were decoded.
    pub n_decoded: usize,
    /// Problems of which it can be said whether the answer is right.
    pub n: u64,
    /// Right answers.
    pub n_right: u64,
    /// Share of right answers.
    pub accuracy: Option<f64>,
    /// Wilson interval of it, 95 %.
    pub ci_lo: Option<f64>,
    /// Upper end.
    pub ci_hi: Option<f64>,
    /// How many problems had each outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Mean of generated tokens.
    pub mean_new_tokens: Option<f64>,
    /// Elapsed time of all generations.
    pub wall_s: f64,
    /// Time in which tokens were scored and evicted, summed over threads.
    pub evict_s: f64,
    /// Generated tokens of all problems by that time.
    pub tokens_per_s: Option<f64>,
    /// Mean over problems of the bytes of keys and values held at most.
    pub mean_peak_kv_bytes: Option<f64>,
    /// Mean over problems of the mean tokens held.
    pub mean_held: Option<f64>,
    /// Steps after which tokens were evicted, over all problems.
    pub n_evictions: i64,
    /// Tokens evicted from each kept set, over all problems.
    pub n_evicted: i64,
    /// Problems in which the certificate holds.
    pub n_certificate: usize,
    /// Problems whose tokens differ from those without eviction.
    pub n_changed: usize,
    /// The comparison with the runs without eviction, over the problems that both graded.
    pub versus_full: Option<Paired>,
}

/// Two policies on the same problems.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// Problems that both graded.
    pub n_pairs: u64,
    /// Right without eviction only.
    pub only_full: u64,
    /// Right under the policy only.
    pub only_policy: u64,
    /// Exact `McNemar`.
    pub p_exact: f64,
    /// Mid-p `McNemar`.
    pub p_mid: f64,
    /// What that means.
    pub verdict: String,
}

impl Summary {
    /// Of what an experiment gave.
    pub fn of(runs: &Runs) -> Self {
        let mut evicting: BTreeMap<(&str, Option<&str>), f64> = BTreeMap::new();
        for timing in &runs.timings {
            *evicting.entry((&timing.policy, timing.budget.as_deref())).or_default() += timing.evict_s;
        }
        let elapsed: BTreeMap<(&str, Option<&str>), f64> = runs
            .elapsed
            .iter()
            .map(|(policy, budget, time)| ((policy.as_str(), budget.as_deref()), time.as_secs_f64()))
            .collect();
        let mut by_group: BTreeMap<(&str, Option<&str>), Vec<&EvictionRun>> = BTreeMap::new();
        for row in &runs.rows {
            by_group.entry((&row.policy, row.budget.as_deref())).or_default().push(row);
        }
        let full: BTreeMap<&str, bool> = runs
            .rows
            .iter()
            .filter(|row| row.policy == FULL)
            .filter_map(|row| Some((row.problem_id.as_str(), row.correct?)))
            .collect();
        let (policies, budgets) = &runs.order;
        let budgets = std::iter::once(None).chain(budgets.iter().map(|budget| Some(budget.as_str())));
        let keys = budgets.flat_map(|budget| policies.iter().map(move |policy| (policy.as_str(), budget)));
        let groups = keys.filter_map(|key| {
            let rows = by_group.get(&key)?;
            let seconds = |of: &BTreeMap<_, f64>| of.get(&key).copied().unwrap_or_default();
            Some(group(rows, (seconds(&elapsed), seconds(&evicting)), &full))
        });
        let groups: Vec<Group> = groups.collect();
        let n_problems = runs.rows.iter().filter(|row| row.policy == FULL).count();
        Self { groups, n_problems, failures: runs.failures.clone() }
    }
}

fn part<'c>(composition: &'c str, name: &str) -> &'c str {
    let of = |part: &'c str| part.strip_prefix(name)?.strip_prefix('=');
    composition.split(';').find_map(of).unwrap_or_default()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0_usize), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / n as f64)
}

/// The figures of the rows of one policy and budget; there is at least one.
fn group(rows: &[&EvictionRun], (wall_s, evict_s): (f64, f64), full: &BTreeMap<&str, bool>) -> Group {
    let first = rows[0];
    let n = rows.iter().filter(|row| row.correct.is_some()).count() as u64;
    let n_right = rows.iter().filter(|row| row.correct == Some(true)).count() as u64;
    let interval = wilson(n_right, n, Confidence::P95);
    let new_tokens: i64 = rows.iter().filter_map(|row| row.n_new).map(i64::from).sum();
    let count = |outcome: Outcome| rows.iter().filter(|row| row.outcome == outcome.name()).count();
    let outcomes = Outcome::ALL.iter().map(|&outcome| (outcome.name().to_owned(), count(outcome)));
    Group {
        policy: first.policy.clone(),
        composition: first.composition.clone(),
        protect: part(&first.composition, "protect").to_owned(),
        position: part(&first.composition, "position").to_owned(),
        layers: first.layers.clone(),
        needs_attention: first.needs_attention,
        budget: first.budget.clone(),
        mean_budget_tokens: mean(rows.iter().filter_map(|row| row.budget_tokens).map(f64::from)),
        n_decoded: rows.iter().filter(|row| row.n_new.is_some()).count(),
        n,
        n_right,
        accuracy: (n > 0).then(|| n_right as f64 / n as f64),
        ci_lo: interval.map(|(lo, _)| lo),
        ci_hi: interval.map(|(_, hi)| hi),
        outcomes: outcomes.filter(|(_, n)| *n > 0).collect(),
        mean_new_tokens: mean(rows.iter().filter_map(|row| row.n_new).map(f64::from)),
        wall_s,
        evict_s,
        tokens_per_s: (wall_s > 0.0).then(|| new_tokens as f64 / wall_s),
        mean_peak_kv_bytes: mean(rows.iter().filter_map(|row| row.peak_kv_bytes).map(|bytes| bytes as f64)),
        mean_held: mean(rows.iter().filter_map(|row| row.held_mean)),
        n_evictions: rows.iter().filter_map(|row| row.n_evictions).map(i64::from).sum(),
        n_evicted: rows.iter().filter_map(|row| row.n_evicted).map(i64::from).sum(),
        n_certificate: rows.iter().filter(|row| row.certificate == Some(true)).count(),
        n_changed: rows.iter().filter(|row| row.first_difference.is_some()).count(),
        versus_full: (first.policy != FULL).then(|| paired(rows, full)).flatten(),
    }
}

/// Exact and mid-p `McNemar` of a policy against no eviction; `None` without a problem that both graded.
fn paired(rows: &[&EvictionRun], full: &BTreeMap<&str, bool>) -> Option<Paired> {
    let pairs = rows.iter().filter_map(|row| Some((*full.get(row.problem_id.as_str())?, row.correct?)));
    let pairs: Vec<(bool, bool)> = pairs.collect();
    let n_pairs = pairs.len() as u64;
    let count = |full: bool, policy: bool| pairs.iter().filter(|pair| **pair == (full, policy)).count() as u64;
    let (only_full, only_policy) = (count(true, false), count(false, true));
    let test = mcnemar(only_full, only_policy);
    let verdict = if test.p_exact >= LEVEL {
        format!("not distinguishable at n={n_pairs}")
    } else if only_full > only_policy {
        "worse than full".to_owned()
    } else {
        "better than full".to_owned()
    };
    (n_pairs > 0).then_some(Paired {
        n_pairs,
        only_full,
        only_policy,
        p_exact: test.p_exact,
        p_mid: test.p_mid,
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(problem: &str, policy: &str, budget: Option<&str>, correct: Option<bool>) -> EvictionRun {
        EvictionRun {
            problem_id: problem.to_owned(),
            policy: policy.to_owned(),
            budget: budget.map(str::to_owned),
            sample: 0,
            dataset: "d".to_owned(),
            composition: "score=recency;protect=prompt+recency;position=logical".to_owned(),
            layers: None,
            needs_attention: false,
            budget_tokens: budget.map(|_| 30),
            outcome: correct.map_or("infeasible", |right| if right { "right" } else { "wrong" }).to_owned(),
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
            held_mean: correct.map(|_| 20.0),
            held_max: None,
            held_peak: None,
            peak_kv_bytes: correct.map(|_| 1000),
            allocated_kv_bytes: None,
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
        Runs {
            rows: full.chain(other).chain([left_out, infeasible]).collect(),
            order: (vec![FULL.to_owned(), "window".to_owned()], vec!["30".to_owned()]),
            ..Runs::default()
        }
    }

    #[test]
    fn groups_by_hand() {
        let summary = Summary::of(&runs(10, |i| i >= 2));
        let [full, window] = &summary.groups[..] else { panic!("two groups") };
        assert_eq!((full.n, full.n_right, &full.versus_full), (11, 10, &None));
        assert_eq!((window.n, window.n_right, window.n_decoded, window.n_evictions), (10, 8, 10, 30));
        assert_eq!(window.outcomes.get("infeasible"), Some(&1));
        assert_eq!((window.protect.as_str(), window.mean_held), ("prompt+recency", Some(20.0)));
        let paired = window.versus_full.clone().expect("ten pairs");
        assert_eq!((paired.n_pairs, paired.only_full, paired.only_policy), (10, 2, 0));
        assert!((paired.p_exact - 0.5).abs() < 1e-12);
        assert_eq!(paired.verdict, "not distinguishable at n=10");
    }

    #[test]
    fn a_clear_difference_is_called_one() {
        let summary = Summary::of(&runs(10, |i| i >= 7));
        assert_eq!(summary.groups[1].versus_full.as_ref().map(|p| p.verdict.as_str()), Some("worse than full"));
    }
}
