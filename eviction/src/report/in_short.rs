//! What an experiment found, in five lines at most, and what it cannot mean.

use std::collections::BTreeMap;

use super::table::{budget, percent};
use crate::analysis::group::Group;
use crate::analysis::summary::Summary;
use crate::policy::registry::FULL;

/// Discordant problems, all in one direction, at which exact `McNemar` first gives p < 0.05.
const LEAST_DISCORDANT: u64 = 6;

/// The lines.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let groups = &summary.groups;
    let mut lines = Vec::new();
    if let Some(full) = groups.iter().find(|group| group.policy == FULL) {
        let share = full.accuracy.map_or_else(|| "no".to_owned(), |share| format!("{} %", percent(share)));
        lines.push(format!("Without eviction {} of {} generations are right ({share}).", full.n_right, full.n));
    }
    lines.extend(best(groups));
    lines.extend(idle(groups));
    lines.extend(scopes(groups));
    if let Some(n) = groups.iter().map(|group| group.n).filter(|n| *n > 0).min() {
        let points = 100.0 * (LEAST_DISCORDANT as f64 / n as f64).min(1.0);
        lines.push(format!("With {n} generations a difference below {points:.0} points cannot reach p < 0.05."));
    }
    lines
}

/// The policies with the most right answers at the smallest and the largest budget, on one line.
fn best(groups: &[Group]) -> Option<String> {
    let mut budgets: BTreeMap<u64, Vec<&Group>> = BTreeMap::new();
    for group in groups.iter().filter(|group| group.n_evictions > 0) {
        let tokens = group.mean_budget_tokens.unwrap_or_default() as u64;
        budgets.entry(tokens).or_default().push(group);
    }
    let of = |groups: &Vec<&Group>| {
        let most = groups.iter().map(|group| group.n_right).max()?;
        let names: Vec<&str> =
            groups.iter().filter(|group| group.n_right == most).map(|group| group.policy.as_str()).collect();
        let named = if names.len() > 3 { format!("{} policies", names.len()) } else { names.join(", ") };
        Some(format!("{} at {} ({most} of {})", named, budget(groups[0]), groups[0].n))
    };
    let ends: Vec<String> = [budgets.values().next(), budgets.values().next_back().filter(|_| budgets.len() > 1)]
        .into_iter()
        .flatten()
        .filter_map(of)
        .collect();
    (!ends.is_empty()).then(|| format!("Most right answers: {}.", ends.join(", ")))
}

/// Policies that had a budget and evicted nothing.
fn idle(groups: &[Group]) -> Option<String> {
    let idle = groups.iter().filter(|group| group.budget.is_some() && group.n_decoded > 0 && group.n_evictions == 0);
    let names: Vec<String> = idle.map(|group| format!("{} at {}", group.policy, budget(group))).collect();
    let (shown, more) = names.split_at(names.len().min(3));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    (!names.is_empty()).then(|| format!("Evicted nothing: {}{more}; their rows say nothing of them.", shown.join(", ")))
}

/// That policies of several scopes stand side by side.
fn scopes(groups: &[Group]) -> Option<String> {
    let mut scopes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for group in groups.iter().filter(|group| group.n_evictions > 0) {
        let scope = group.composition.split(';').find_map(|part| part.strip_prefix("scope="));
        let names = scopes.entry(scope.unwrap_or_default()).or_default();
        if !names.contains(&group.policy.as_str()) {
            names.push(&group.policy);
        }
    }
    let of = |(scope, names): (&&str, &Vec<&str>)| format!("{} {scope}", names.len());
    (scopes.len() > 1).then(|| {
        let counts = scopes.iter().map(of).collect::<Vec<_>>().join(", ");
        format!(
            "Policies keep one set of tokens for each head, each layer or all of them ({counts}): a difference between these \
             is one of the scope as well as of the score."
        )
    })
}
