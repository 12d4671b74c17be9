//! Every figure of the report in full, one line a policy and budget, and one a comparison.

use epikv_figures::{number, push_row, quoted};

use crate::analysis::group::Group;
use crate::analysis::summary::Summary;

/// A column: its name, and its field of a group.
type Column = (&'static str, fn(&Group) -> String);

const COLUMNS: &[Column] = &[
    ("policy", |g| quoted(&g.policy)),
    ("budget", |g| number(g.budget.clone())),
    ("budget_tokens", |g| number(g.mean_budget_tokens)),
    ("n_decoded", |g| g.n_decoded.to_string()),
    ("n", |g| g.n.to_string()),
    ("n_right", |g| g.n_right.to_string()),
    ("accuracy", |g| number(g.accuracy)),
    ("lo", |g| number(g.ci_lo)),
    ("hi", |g| number(g.ci_hi)),
    ("interval", |g| g.interval.to_owned()),
    ("clustered_se", |g| number(g.clustered_se)),
    ("pass_at_k", |g| number(g.pass_at_k)),
    ("capped", |g| number(g.capped)),
    ("mean_new_tokens", |g| number(g.mean_new_tokens)),
    ("tokens_per_right", |g| number(g.tokens_per_right.map(|c| c.ratio))),
    ("tokens_per_right_lo", |g| number(g.tokens_per_right.and_then(|c| c.lo))),
    ("tokens_per_right_hi", |g| number(g.tokens_per_right.and_then(|c| c.hi))),
    ("kv_byte_steps_per_right", |g| number(g.kv_byte_steps_per_right.map(|c| c.ratio))),
    ("kv_byte_steps_per_right_lo", |g| number(g.kv_byte_steps_per_right.and_then(|c| c.lo))),
    ("kv_byte_steps_per_right_hi", |g| number(g.kv_byte_steps_per_right.and_then(|c| c.hi))),
    ("mean_held", |g| number(g.mean_held)),
    ("mean_steady", |g| number(g.mean_steady)),
    ("mean_peak", |g| number(g.mean_peak)),
    ("mean_peak_kv_bytes", |g| number(g.mean_peak_kv_bytes)),
    ("n_evictions", |g| g.n_evictions.to_string()),
    ("n_certificate", |g| g.n_certificate.to_string()),
    ("mean_wall_s", |g| number(g.time.as_ref().map(|t| t.mean_wall_s))),
    ("tokens_per_s", |g| number(g.time.as_ref().map(|t| t.tokens_per_s))),
    ("composition", |g| quoted(&g.composition)),
];

/// The figures of all groups as CSV; undefined is empty.
pub fn csv(summary: &Summary) -> String {
    let mut text = COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
    text.push('\n');
    for group in &summary.groups {
        push_row(&mut text, &COLUMNS.iter().map(|(_, of)| of(group)).collect::<Vec<_>>());
    }
    text
}
