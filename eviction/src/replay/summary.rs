//! The figures of a replay, and its report.

use std::collections::BTreeMap;

use epikv_schemas::{EvictionCurve, EvictionReplay, EvictionRun};
use epikv_stats::Confidence;
use epikv_stats::proportion::wilson;
use serde::Serialize;

use super::predict::{Prediction, predict};
use crate::analysis::mean::mean;
use crate::analysis::order::{order_of_budget, order_of_policy};
use crate::report::table::{UNDEFINED, number, percent, percents, table};
use crate::report::{Line, LineKind, Panel, Plot, Point};

/// Everything that a replay shows.
#[derive(Debug, Clone, Serialize)]
pub struct ReplaySummary {
    /// One group for each policy and budget.
    pub groups: Vec<ReplayGroup>,
    /// Curves by score.
    pub curves: Vec<CurvePoint>,
    /// How well each measure predicts free runs; empty without free runs.
    pub predictions: Vec<Prediction>,
    /// Traces that were replayed.
    pub n_traces: usize,
    /// Traces that were not, with the reason.
    pub skipped: Vec<String>,
}

/// One policy at one budget. Means are over traces; undefined is null.
#[derive(Debug, Clone, Serialize)]
pub struct ReplayGroup {
    /// Policy.
    pub policy: String,
    /// Budget as asked for.
    pub budget: String,
    /// Traces.
    pub n: usize,
    /// Traces that the budget cannot hold.
    pub n_infeasible: usize,
    /// Traces in which the certificate holds.
    pub n_certificate: usize,
    /// Mean share of important tokens held at the end.
    pub mass_end: Option<f64>,
    /// Mean gain over a random choice at the end, in units of the best choice.
    pub gain_end: Option<f64>,
    /// The same over steps.
    pub gain_mean: Option<f64>,
    /// Traces of which all of the following can be said.
    pub n_answers: usize,
    /// Share of right answers without eviction.
    pub full: Option<f64>,
    /// With the tokens held, keys and values as without eviction.
    pub clean: Option<f64>,
    /// With the policy's own keys and values.
    pub own: Option<f64>,
    /// In a free run of the same problems; null where there is none.
    pub free: Option<f64>,
}

/// Right answers when the highest share of the tokens is held or deleted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The score.
    pub score: String,
    /// `keep` or `delete`.
    pub kind: String,
    /// How many in a hundred tokens are the highest.
    pub percent: i32,
    /// Traces of which it can be said.
    pub n: u64,
    /// Right answers.
    pub n_right: u64,
}

impl ReplaySummary {
    /// Of what a replay gave, beside free runs of the same policies where there are any.
    pub fn of(replay: &super::ask::Replay, runs: &[EvictionRun]) -> Self {
        let mut by_group: BTreeMap<(&str, &str), Vec<&EvictionReplay>> = BTreeMap::new();
        for row in &replay.rows {
            by_group.entry((&row.policy, &row.budget)).or_default().push(row);
        }
        let mut keys: Vec<_> = by_group.keys().copied().collect();
        keys.sort_by_key(|(policy, budget)| (order_of_budget(Some(budget)), order_of_policy(policy), *policy));
        let traces: std::collections::BTreeSet<&str> = replay.rows.iter().map(|row| row.trace_id.as_str()).collect();
        Self {
            groups: keys.iter().map(|key| group(&by_group[key], runs)).collect(),
            curves: curve(&replay.curves),
            predictions: predict(&replay.rows, runs),
            n_traces: traces.len(),
            skipped: replay.skipped.clone(),
        }
    }

    /// The tables as Markdown.
    pub fn markdown(&self, facts: &[(String, String)]) -> String {
        let facts: Vec<Vec<String>> = facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
        let mut text =
            format!("# Replay\n\n{}\n## Label mass and answers\n\n{}\n", table(&["", ""], &facts, &[]), self.table());
        text += "`held` is the share of the important tokens that could be evicted and are still held at the end, a mean over \
                 traces; `gain` is (share - random) / (best - random), for the end and over steps: 0 is a random choice, 1 one \
                 that knows the labels. Answers are decoded after the whole trace: without eviction (`full`), with the tokens \
                 held but keys and values as they are without eviction (`clean`), with the policy's own (`own`). `retrieval` = \
                 full - clean, `corruption` = clean - own, `divergence` = own - free run, in points.\n\n";
        text += "## What predicts a free run\n\n";
        if self.predictions.is_empty() {
            text += "No free runs of three or more of these policies at one of these budgets: `epikv evict` into the same folder \
                     makes them.\n";
        } else {
            text += &table(
                &["measure", "budgets", "policies", "problems", "rho", "95 %"],
                &self.predictions.iter().map(prediction).collect::<Vec<_>>(),
                &[1, 2, 3, 4, 5],
            );
            text += "\nSpearman's rho over policies of the measure with the accuracy of free runs, within a budget, averaged over \
                     budgets; the interval resamples problems.\n";
        }
        if !self.curves.is_empty() {
            text += "\n## Keep and delete\n\n";
            text += &self.curve_table();
            text.push('\n');
            text += "Right answers in percent when the highest share of the reasoning tokens is held (`keep`) or all but it \
                     (`delete`), with keys and values as they are without eviction.\n";
        }
        if !self.skipped.is_empty() {
            text += "\n## Left out\n\n- ";
            text += &self.skipped.join("\n- ");
            text.push('\n');
        }
        text
    }

    /// The groups.
    pub fn table(&self) -> String {
        let share = |share: Option<f64>| share.map_or(UNDEFINED.to_owned(), percent);
        let less = |a: Option<f64>, b: Option<f64>| share(a.zip(b).map(|(a, b)| a - b));
        let row = |group: &ReplayGroup| {
            vec![
                group.policy.clone(),
                group.budget.clone(),
                group.n.to_string(),
                share(group.mass_end),
                number(group.gain_end, 2),
                number(group.gain_mean, 2),
                share(group.full),
                share(group.clean),
                share(group.own),
                share(group.free),
                less(group.full, group.clean),
                less(group.clean, group.own),
                less(group.own, group.free),
                format!("{}/{}", group.n_certificate, group.n - group.n_infeasible),
            ]
        };
        let heads = [
            "policy",
            "budget",
            "traces",
            "held %",
            "gain",
            "gain, steps",
            "full %",
            "clean %",
            "own %",
            "free %",
            "retrieval",
            "corruption",
            "divergence",
            "certificate",
        ];
        table(&heads, &self.groups.iter().map(row).collect::<Vec<_>>(), &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
    }

    fn curve_table(&self) -> String {
        let mut highest: Vec<i32> = self.curves.iter().map(|point| point.percent).collect();
        highest.sort_unstable();
        highest.dedup();
        let mut rows: Vec<(&str, &str)> = Vec::new();
        for point in &self.curves {
            if !rows.contains(&(&point.score, &point.kind)) {
                rows.push((&point.score, &point.kind));
            }
        }
        let cell = |(score, kind): (&str, &str), highest: i32| {
            let found = self.curves.iter().find(|p| p.score == score && p.kind == kind && p.percent == highest);
            found.filter(|p| p.n > 0).map_or(UNDEFINED.to_owned(), |p| {
                format!(
                    "{} ({})",
                    percent(p.n_right as f64 / p.n as f64),
                    percents(wilson(p.n_right, p.n, Confidence::P95))
                )
            })
        };
        let heads: Vec<String> = ["score".to_owned(), "highest are".to_owned()]
            .into_iter()
            .chain(highest.iter().map(|highest| format!("{highest} %")))
            .collect();
        let row = |key: &(&str, &str)| -> Vec<String> {
            [key.0.to_owned(), key.1.to_owned()]
                .into_iter()
                .chain(highest.iter().map(|&highest| cell(*key, highest)))
                .collect()
        };
        let right: Vec<usize> = (2..heads.len()).collect();
        table(&heads.iter().map(String::as_str).collect::<Vec<_>>(), &rows.iter().map(row).collect::<Vec<_>>(), &right)
    }

    /// The curves as a figure; `None` without any.
    pub fn plot(&self, model: &str) -> Option<Plot> {
        let mut scores: Vec<&str> = Vec::new();
        for point in &self.curves {
            if !scores.contains(&point.score.as_str()) {
                scores.push(&point.score);
            }
        }
        let point = |p: &CurvePoint| {
            let percent = |(lo, hi): (f64, f64)| (100.0 * lo, 100.0 * hi);
            let interval = wilson(p.n_right, p.n, Confidence::P95).map(percent);
            Point { x: f64::from(p.percent), y: 100.0 * p.n_right as f64 / p.n as f64, interval }
        };
        let panel = |kind: &str, label: &str, scores: &[&str]| {
            let line = |(at, score): (usize, &&str)| {
                let own = self.curves.iter().filter(|p| p.kind == kind && p.score == **score && p.n > 0);
                let points = own.map(point).collect();
                Line { name: (*score).to_owned(), kind: LineKind::Series, points, look: 1 + at }
            };
            Panel { x_label: label.to_owned(), lines: scores.iter().enumerate().map(line).collect() }
        };
        let row = |scores: &[&str]| {
            vec![panel("keep", "highest tokens held, %", scores), panel("delete", "highest tokens deleted, %", scores)]
        };
        (!scores.is_empty()).then(|| Plot {
            title: "Right answers when the highest tokens of a score are held or deleted".to_owned(),
            y_label: "right answers, %".to_owned(),
            y_max: Some(100.0),
            rows: scores.chunks(6).map(row).collect(),
            caption: vec![
                format!("Model {model}, {} traces; ribbons are 95 % Wilson intervals.", self.n_traces),
                "Keys and values are those without eviction; the prompt is always held.".to_owned(),
            ],
        })
    }
}

fn prediction(one: &Prediction) -> Vec<String> {
    let bounds = one.lo.zip(one.hi).map_or(UNDEFINED.to_owned(), |(lo, hi)| format!("{lo:.2}..{hi:.2}"));
    vec![
        one.measure.to_owned(),
        one.n_budgets.to_string(),
        one.n_policies.to_string(),
        one.n_problems.to_string(),
        number(one.rho, 2),
        bounds,
    ]
}

/// The figures of one policy and budget; there is at least one row.
fn group(rows: &[&EvictionReplay], runs: &[EvictionRun]) -> ReplayGroup {
    let first = rows[0];
    let free_of = |row: &EvictionReplay| {
        let same = |run: &&EvictionRun| {
            run.policy == row.policy
                && run.budget.as_deref() == Some(row.budget.as_str())
                && run.problem_id == row.problem_id
        };
        mean(runs.iter().filter(same).filter_map(|run| run.correct).map(|right| f64::from(u8::from(right))))
    };
    // The parts of the loss are differences of means, so all of them are over the same traces.
    let whole = |row: &&&EvictionReplay| row.full_correct.is_some() && row.own_correct.is_some();
    let answered: Vec<&&EvictionReplay> = rows.iter().filter(whole).collect();
    let share = |of: fn(&EvictionReplay) -> Option<bool>| {
        mean(answered.iter().filter_map(|row| of(row)).map(|right| f64::from(u8::from(right))))
    };
    ReplayGroup {
        policy: first.policy.clone(),
        budget: first.budget.clone(),
        n: rows.len(),
        n_infeasible: rows.iter().filter(|row| row.certificate.is_none()).count(),
        n_certificate: rows.iter().filter(|row| row.certificate == Some(true)).count(),
        mass_end: mean(rows.iter().filter_map(|row| row.mass_end)),
        gain_end: mean(rows.iter().filter_map(|row| row.gain_end)),
        gain_mean: mean(rows.iter().filter_map(|row| row.gain_mean)),
        n_answers: answered.len(),
        full: share(|row| row.full_correct),
        clean: share(|row| row.clean_correct),
        own: share(|row| row.own_correct),
        free: mean(answered.iter().filter_map(|row| free_of(row))),
    }
}

fn curve(rows: &[EvictionCurve]) -> Vec<CurvePoint> {
    let mut points: Vec<CurvePoint> = Vec::new();
    for row in rows {
        let same = |p: &&mut CurvePoint| p.score == row.score && p.kind == row.kind && p.percent == row.percent;
        let (n, right) = (u64::from(row.correct.is_some()), u64::from(row.correct == Some(true)));
        match points.iter_mut().find(same) {
            Some(point) => (point.n, point.n_right) = (point.n + n, point.n_right + right),
            None => points.push(CurvePoint {
                score: row.score.clone(),
                kind: row.kind.clone(),
                percent: row.percent,
                n,
                n_right: right,
            }),
        }
    }
    points
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(
        problem: &str,
        policy: &str,
        budget: &str,
        mass: Option<f64>,
        own: Option<bool>,
    ) -> EvictionReplay {
        EvictionReplay {
            trace_id: problem.to_owned(),
            problem_id: problem.to_owned(),
            dataset: "d".to_owned(),
            policy: policy.to_owned(),
            budget: budget.to_owned(),
            composition: "score=recency".to_owned(),
            budget_tokens: Some(30),
            n_prompt: 5,
            n_fed: 50,
            n_important: Some(3),
            mass_end: mass,
            gain_end: mass,
            mass_mean: mass,
            gain_mean: mass,
            n_evicted: Some(4),
            certificate: own.map(|_| true),
            full_correct: Some(true),
            clean_correct: own,
            own_correct: own,
            full_answer: None,
            clean_answer: None,
            own_answer: None,
        }
    }

    #[test]
    fn the_loss_is_split_over_the_same_traces() {
        let clean = |mut row: EvictionReplay, right: bool| {
            row.clean_correct = Some(right);
            row
        };
        let rows = vec![
            clean(row("a", "window", "30", Some(0.5), Some(false)), true),
            clean(row("b", "window", "30", Some(1.0), Some(true)), true),
            row("c", "window", "30", None, Some(false)),
            row("d", "window", "30", None, None),
        ];
        let replay = super::super::ask::Replay { rows, skipped: vec!["e: why".to_owned()], ..Default::default() };
        let summary = ReplaySummary::of(&replay, &[]);
        let [group] = &summary.groups[..] else { panic!("one group") };
        assert_eq!((group.n, group.n_infeasible, group.n_answers, group.mass_end), (4, 1, 3, Some(0.75)));
        let third = 1.0 / 3.0;
        assert!(
            (group.clean.expect("said") - 2.0 * third).abs() < 1e-12
                && (group.own.expect("said") - third).abs() < 1e-12
        );
        let text = summary.markdown(&[]);
        assert!(text.contains("33.3") && text.contains("e: why") && text.contains("No free runs"), "{text}");
        assert!(summary.plot("m").is_none());
    }

    #[test]
    fn curves_add_up_by_score_direction_and_share() {
        let one = |trace: &str, percent: i32, correct: Option<bool>| EvictionCurve {
            trace_id: trace.to_owned(),
            problem_id: trace.to_owned(),
            dataset: "d".to_owned(),
            score: "epikv".to_owned(),
            kind: "keep".to_owned(),
            percent,
            n_held: 3,
            correct,
            answer: None,
        };
        let points =
            curve(&[one("a", 50, Some(true)), one("b", 50, Some(false)), one("c", 50, None), one("a", 10, None)]);
        assert_eq!((points[0].n, points[0].n_right, points.len()), (2, 1, 2));
    }
}
