//! Optional sections of the report.

use std::collections::BTreeMap;

use epikv_words::exact_p;

use super::table::{UNDEFINED, budget, percent, percents, table};
use crate::analysis::group::Group;
use crate::analysis::summary::Summary;

/// For each set of parts that several scores ran under: the scores at each budget, everything else held. Empty where no
/// two policies differ in the score alone.
pub fn swap(summary: &Summary) -> String {
    let mut held: BTreeMap<&str, Vec<&Group>> = BTreeMap::new();
    for group in summary.groups.iter().filter(|group| group.budget.is_some()) {
        if let Some((_, others)) = group.composition.split_once(';') {
            held.entry(others).or_default().push(group);
        }
    }
    let tables = held.into_iter().filter_map(|(parts, groups)| {
        let (mut scores, mut budgets) = (Vec::new(), Vec::new());
        for group in &groups {
            let (score, budget) = (score(group), group.budget.as_deref().unwrap_or_default());
            if !scores.contains(&score) {
                scores.push(score);
            }
            if !budgets.contains(&budget) {
                budgets.push(budget);
            }
        }
        let cell = |score: &str, budget: &str| {
            let group = groups.iter().find(|g| self::score(g) == score && g.budget.as_deref() == Some(budget));
            group.map_or(UNDEFINED.to_owned(), |group| {
                let bounds = percents(group.ci_lo.zip(group.ci_hi));
                format!("{} ({bounds})", group.accuracy.map_or(UNDEFINED.to_owned(), percent))
            })
        };
        let row = |score: &&str| -> Vec<String> {
            let cells = budgets.iter().map(|budget| cell(score, budget));
            std::iter::once((*score).to_owned()).chain(cells).collect()
        };
        let heads: Vec<&str> = std::iter::once("score").chain(budgets.iter().copied()).collect();
        let right: Vec<usize> = (1..heads.len()).collect();
        let rows: Vec<Vec<String>> = scores.iter().map(row).collect();
        (scores.len() > 1).then(|| format!("held: `{parts}`\n\n{}", table(&heads, &rows, &right)))
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// The score of a group, without the word.
fn score(group: &Group) -> &str {
    group.composition.split(';').next().and_then(|part| part.strip_prefix("score=")).unwrap_or_default()
}

/// Comparisons over several problem sets, set by set, with a line on whether they agree.
pub(super) fn strata(summary: &Summary) -> String {
    let rows = summary.groups.iter().flat_map(|group| {
        group.versus.iter().flat_map(move |paired| {
            let agree = paired
                .heterogeneity
                .map_or(UNDEFINED.to_owned(), |h| format!("chi2({}) = {:.2}, p {}", h.df, h.chi2, exact_p(h.p)));
            let pooled = (!paired.strata.is_empty()).then(|| {
                let counts = [paired.n_pairs, paired.wins, paired.losses];
                ("all".to_owned(), counts, agree)
            });
            let of = |s: &crate::analysis::comparison::Stratum| {
                (s.dataset.clone(), [s.n_pairs, s.wins, s.losses], UNDEFINED.to_owned())
            };
            paired.strata.iter().map(of).chain(pooled).map(|(set, counts, agree)| {
                let first = [group.policy.clone(), budget(group), paired.against.clone(), set];
                first.into_iter().chain(counts.map(|n| n.to_string())).chain([agree]).collect()
            })
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let heads = ["policy", "budget", "against", "problem set", "pairs", "wins", "losses", "heterogeneity"];
    if rows.is_empty() { String::new() } else { table(&heads, &rows, &[4, 5, 6]) }
}

/// Means over samples and the best of them; empty for one sample.
pub(super) fn samples(summary: &Summary) -> String {
    let rows = summary.groups.iter().filter(|group| group.interval == "clustered").map(|group| {
        let share = |share: Option<f64>| share.map_or(UNDEFINED.to_owned(), percent);
        vec![
            group.policy.clone(),
            budget(group),
            group.n.to_string(),
            share(group.accuracy),
            share(group.clustered_se),
            share(group.pass_at_k),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let heads = ["policy", "budget", "runs", "avg@k", "error", "pass@k"];
    if rows.is_empty() { String::new() } else { table(&heads, &rows, &[2, 3, 4, 5]) }
}

/// Components of the variance of randomised policies.
pub(super) fn components(summary: &Summary) -> String {
    let row = |of: &crate::analysis::variance::Components| {
        let part = |part: Option<f64>| part.map_or(UNDEFINED.to_owned(), |part| format!("{part:.4}"));
        vec![
            of.policy.clone(),
            of.budget.clone().unwrap_or(UNDEFINED.to_owned()),
            of.n_problems.to_string(),
            of.n_seeds.to_string(),
            of.n_samples.to_string(),
            part(of.problem),
            part(Some(of.eviction)),
            part(of.sampling),
            part(of.both),
        ]
    };
    let rows: Vec<Vec<String>> = summary.components.iter().map(row).collect();
    let heads = ["policy", "budget", "problems", "seeds", "samples", "problem", "eviction", "sampling", "both"];
    if rows.is_empty() { String::new() } else { table(&heads, &rows, &[2, 3, 4, 5, 6, 7, 8]) }
}

/// How far recorded signals drifted.
pub(super) fn drift(summary: &Summary) -> String {
    let number = |value: Option<f64>| value.map_or(UNDEFINED.to_owned(), |value| format!("{value:.4}"));
    let row = |of: &crate::analysis::drift::Drift| {
        let budget = of.budget.clone().unwrap_or(UNDEFINED.to_owned());
        vec![of.policy.clone(), budget, of.signal.clone(), of.n.to_string(), number(of.drift), number(of.rho)]
    };
    let rows: Vec<Vec<String>> = summary.drift.iter().map(row).collect();
    let heads = ["policy", "budget", "signal", "values", "drift", "rho"];
    if rows.is_empty() { String::new() } else { table(&heads, &rows, &[3, 4, 5]) }
}

/// Every policy with all its parts.
pub(super) fn compositions(summary: &Summary) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for group in &summary.groups {
        let row = vec![group.policy.clone(), format!("`{}`", group.composition)];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    table(&["policy", "all its parts"], &rows, &[])
}
