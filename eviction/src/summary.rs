//! The figures of an experiment: one group for each policy and budget, each compared with the runs without eviction.

use std::collections::{BTreeMap, BTreeSet};

use epikv_schemas::{EvictionRun, EvictionTiming};
use epikv_stats::Confidence;
use epikv_stats::clustered::{ClusteredMean, clustered_se};
use epikv_stats::pass_at_k::pass_at_k_over;
use epikv_stats::proportion::wilson;
use serde::Serialize;

use crate::comparison::{Paired, Sets, Verdicts, adjust};
use crate::cost::Cost;
use crate::drift::Drift;
use crate::experiment::Runs;
use crate::outcome::Outcome;
use crate::registry::{FULL, POLICIES, RANDOM};
use crate::variance::{Components, components};

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
    /// Where the spread of policies that draw comes from; empty where none ran under several seeds.
    pub components: Vec<Components>,
    /// How far recorded signals drifted; empty where none were recorded.
    pub drift: Vec<Drift>,
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
    /// Generations of which it can be said whether the answer is right.
    pub n: u64,
    /// Right answers.
    pub n_right: u64,
    /// Share of right answers.
    pub accuracy: Option<f64>,
    /// Interval of it, 95 %.
    pub ci_lo: Option<f64>,
    /// Upper end.
    pub ci_hi: Option<f64>,
    /// Which interval it is: `wilson`, or `clustered` by problem for several samples.
    pub interval: &'static str,
    /// Mean over problems of pass@k, with k the samples of a problem; null for one sample.
    pub pass_at_k: Option<f64>,
    /// Standard error of the accuracy, clustered by problem; null for one sample.
    pub clustered_se: Option<f64>,
    /// Generations that ended at a limit.
    pub n_capped: usize,
    /// Share of them among those that were decoded.
    pub capped: Option<f64>,
    /// Interval of it (Wilson), 95 %.
    pub capped_lo: Option<f64>,
    /// Upper end.
    pub capped_hi: Option<f64>,
    /// Generated tokens for each right answer; null without one.
    pub tokens_per_right: Option<Cost>,
    /// Bytes of keys and values held, summed over steps, for each right answer; null without one.
    pub kv_byte_steps_per_right: Option<Cost>,
    /// How many problems had each outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Mean of generated tokens.
    pub mean_new_tokens: Option<f64>,
    /// Where the time went; null where times cannot be compared.
    pub time: Option<Time>,
    /// Mean over problems of the bytes of keys and values held at most.
    pub mean_peak_kv_bytes: Option<f64>,
    /// Mean over problems of the mean tokens held.
    pub mean_held: Option<f64>,
    /// Mean over problems of the mean tokens held from the first eviction on.
    pub mean_steady: Option<f64>,
    /// Mean over problems of the most tokens held.
    pub mean_peak: Option<f64>,
    /// Steps after which tokens were evicted, over all problems.
    pub n_evictions: i64,
    /// Tokens evicted from each kept set, over all problems.
    pub n_evicted: i64,
    /// Problems in which the certificate holds.
    pub n_certificate: usize,
    /// Problems whose tokens differ from those without eviction.
    pub n_changed: usize,
    /// Comparisons with other policies at the same budget, over the runs that both graded.
    pub versus: Vec<Paired>,
}

/// Time of the generations of a group, summed: where several run at once it is more than the elapsed time.
#[derive(Debug, Clone, Serialize)]
pub struct Time {
    /// All of it.
    pub wall_s: f64,
    /// In forward passes.
    pub forward_s: f64,
    /// In scoring.
    pub score_s: f64,
    /// In choosing what goes.
    pub select_s: f64,
    /// In freeing slots and moving keys and values.
    pub move_s: f64,
    /// Generated tokens by all of it.
    pub tokens_per_s: f64,
    /// Mean of it over generations.
    pub mean_wall_s: f64,
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
        let on: BTreeSet<_> = runs.timings.iter().map(|t| (&t.machine, &t.kernel, t.batch, t.threads)).collect();
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

/// Plain numbers first, ascending, then relative budgets; no budget before all.
pub(crate) fn order_of_budget(budget: Option<&str>) -> (u8, usize, &str) {
    match budget {
        None => (0, 0, ""),
        Some(text) => match text.parse() {
            Ok(tokens) => (1, tokens, ""),
            Err(_) => (2, 0, text),
        },
    }
}

pub(crate) fn order_of_policy(policy: &str) -> usize {
    let row = policy.split(';').next();
    POLICIES.iter().position(|known| Some(known.name) == row).unwrap_or(POLICIES.len())
}

fn part<'c>(composition: &'c str, name: &str) -> &'c str {
    let of = |part: &'c str| part.strip_prefix(name)?.strip_prefix('=');
    composition.split(';').find_map(of).unwrap_or_default()
}

pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0_usize), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / n as f64)
}

/// The figures of the rows of one policy and budget; there is at least one.
fn group(rows: &[&EvictionRun], timings: &[&EvictionTiming]) -> Group {
    let first = rows[0];
    let n = rows.iter().filter(|row| row.correct.is_some()).count() as u64;
    let n_right = rows.iter().filter(|row| row.correct == Some(true)).count() as u64;
    let (interval, interval_kind) = interval(rows, n_right, n);
    let n_decoded = rows.iter().filter(|row| row.n_new.is_some()).count();
    let n_capped = rows.iter().filter(|row| is_capped(row)).count();
    let capped = wilson(n_capped as u64, n_decoded as u64, Confidence::P95);
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
        n_decoded,
        n,
        n_right,
        accuracy: (n > 0).then(|| n_right as f64 / n as f64),
        ci_lo: interval.map(|(lo, _)| lo),
        ci_hi: interval.map(|(_, hi)| hi),
        interval: interval_kind,
        pass_at_k: pass_at_k(rows),
        clustered_se: (interval_kind == "clustered").then(|| clustered(rows)?.se_cr1).flatten(),
        n_capped,
        capped: (n_decoded > 0).then(|| n_capped as f64 / n_decoded as f64),
        capped_lo: capped.map(|(lo, _)| lo),
        capped_hi: capped.map(|(_, hi)| hi),
        tokens_per_right: cost(rows, |row| row.n_new.map(f64::from)),
        kv_byte_steps_per_right: cost(rows, |row| row.kv_byte_steps.map(|bytes| bytes as f64)),
        outcomes: outcomes.filter(|(_, n)| *n > 0).collect(),
        mean_new_tokens: mean(rows.iter().filter_map(|row| row.n_new).map(f64::from)),
        time: Time::of(timings, new_tokens),
        mean_peak_kv_bytes: mean(rows.iter().filter_map(|row| row.peak_kv_bytes).map(|bytes| bytes as f64)),
        mean_held: mean(rows.iter().filter_map(|row| row.held_mean)),
        mean_steady: mean(rows.iter().filter_map(|row| row.held_steady)),
        mean_peak: mean(rows.iter().filter_map(|row| row.held_peak).map(f64::from)),
        n_evictions: rows.iter().filter_map(|row| row.n_evictions).map(i64::from).sum(),
        n_evicted: rows.iter().filter_map(|row| row.n_evicted).map(i64::from).sum(),
        n_certificate: rows.iter().filter(|row| row.certificate == Some(true)).count(),
        n_changed: rows.iter().filter(|row| row.first_difference.is_some()).count(),
        versus: Vec::new(),
    }
}

fn is_capped(row: &EvictionRun) -> bool {
    row.finish_reason.as_deref().is_some_and(|reason| reason != "eos")
}

/// Right and graded runs of each problem.
fn by_problem(rows: &[&EvictionRun]) -> BTreeMap<String, (u64, u64)> {
    let mut problems: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in rows {
        if let Some(correct) = row.correct {
            let counts = problems.entry(row.problem_id.clone()).or_default();
            *counts = (counts.0 + u64::from(correct), counts.1 + 1);
        }
    }
    problems
}

/// The interval of the share of right answers, 95 %: Wilson for one run a problem, for more the normal interval with
/// standard errors clustered by problem.
fn interval(rows: &[&EvictionRun], n_right: u64, n: u64) -> (Option<(f64, f64)>, &'static str) {
    if by_problem(rows).values().all(|(_, n)| *n <= 1) {
        return (wilson(n_right, n, Confidence::P95), "wilson");
    }
    let bounds = clustered(rows).and_then(|mean| {
        let half = Confidence::P95.z() * mean.se_cr1?;
        Some(((mean.mean - half).max(0.0), (mean.mean + half).min(1.0)))
    });
    (bounds, "clustered")
}

/// The share of right answers with its standard errors, by problem.
fn clustered(rows: &[&EvictionRun]) -> Option<ClusteredMean> {
    let graded = rows.iter().filter_map(|row| Some((f64::from(u8::from(row.correct?)), row.problem_id.as_str())));
    let (values, problems): (Vec<f64>, Vec<&str>) = graded.unzip();
    clustered_se(&values, &problems)
}

/// What a right answer cost, over the generations of which it can be said whether they are right.
fn cost(rows: &[&EvictionRun], spent: impl Fn(&EvictionRun) -> Option<f64>) -> Option<Cost> {
    let mut problems: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.correct.is_some()) {
        let sums = problems.entry(&row.problem_id).or_default();
        *sums = (sums.0 + spent(row)?, sums.1 + u64::from(row.correct == Some(true)));
    }
    Cost::of(&problems.into_values().collect::<Vec<_>>())
}

/// pass@k with `k` the samples of a problem; `None` for one sample, or where problems have unequally many.
fn pass_at_k(rows: &[&EvictionRun]) -> Option<f64> {
    let problems: Vec<(u64, u64)> = by_problem(rows).into_values().map(|(right, n)| (n, right)).collect();
    let k = problems.first()?.0;
    (k > 1 && problems.iter().all(|(n, _)| *n == k)).then(|| pass_at_k_over(&problems, k).map(|pass| pass.mean))?
}

impl Time {
    fn of(timings: &[&EvictionTiming], new_tokens: i64) -> Option<Self> {
        let sum = |of: fn(&EvictionTiming) -> f64| timings.iter().map(|timing| of(timing)).sum::<f64>();
        let wall_s = sum(|timing| timing.wall_s);
        (wall_s > 0.0).then(|| Self {
            wall_s,
            forward_s: sum(|timing| timing.forward_s),
            score_s: sum(|timing| timing.score_s),
            select_s: sum(|timing| timing.select_s),
            move_s: sum(|timing| timing.move_s),
            tokens_per_s: new_tokens as f64 / wall_s,
            mean_wall_s: wall_s / timings.len() as f64,
        })
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
