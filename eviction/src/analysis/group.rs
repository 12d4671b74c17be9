//! One policy at one budget: its figures.

use std::collections::BTreeMap;

use epikv_schemas::{EvictionRun, EvictionTiming};
use epikv_stats::Confidence;
use epikv_stats::clustered::{ClusteredMean, clustered_se};
use epikv_stats::pass_at_k::pass_at_k_over;
use epikv_stats::proportion::wilson;
use serde::Serialize;

use crate::analysis::comparison::Paired;
use crate::analysis::cost::Cost;
use crate::analysis::mean::mean;
use crate::experiment::outcome::Outcome;

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

fn part<'c>(composition: &'c str, name: &str) -> &'c str {
    let of = |part: &'c str| part.strip_prefix(name)?.strip_prefix('=');
    composition.split(';').find_map(of).unwrap_or_default()
}

/// The figures of the rows of one policy and budget; there is at least one.
pub(crate) fn group(rows: &[&EvictionRun], timings: &[&EvictionTiming]) -> Group {
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
