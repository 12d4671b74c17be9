//! The figure of a report: accuracy against budget, memory and time.

use std::collections::BTreeSet;

use epikv_figures::plot::{Line, LineKind, Panel, Plot, Point};

use crate::analysis::group::Group;
use crate::analysis::summary::Summary;

/// Policies of one row of panels; more could not be told apart.
const LINES_A_ROW: usize = 6;

/// A horizontal axis: its label, and where a group stands on it.
type Abscissa = (&'static str, fn(&Group) -> Option<f64>);

/// Accuracy against budget, against the mean of the tokens held and, where times may be compared, against time. What evicted
/// nothing is left out, since it says nothing of its policy. `None` where nothing evicted under a budget.
pub fn accuracy_plot(summary: &Summary, model: &str) -> Option<Plot> {
    let mut names: Vec<&str> = Vec::new();
    for group in summary.groups.iter().filter(|group| evicted(group) && group.accuracy.is_some()) {
        if !names.contains(&group.policy.as_str()) {
            names.push(&group.policy);
        }
    }
    if names.is_empty() {
        return None;
    }
    let mut axes: Vec<Abscissa> = vec![
        ("budget, tokens a layer", |group| group.mean_budget_tokens),
        ("mean of the tokens held", |group| group.mean_held),
    ];
    if summary.times_comparable {
        axes.push(("seconds a generation", |group| group.time.as_ref().map(|time| time.mean_wall_s)));
    }
    let intervals: BTreeSet<&str> = summary.groups.iter().map(|group| group.interval).collect();
    let row = |names: &[&str]| axes.iter().map(|axis| panel(summary, names, *axis)).collect::<Vec<_>>();
    Some(Plot {
        title: "Accuracy against budget, memory and time".to_owned(),
        y_label: "right answers, %".to_owned(),
        y_max: Some(100.0),
        rows: names.chunks(LINES_A_ROW).map(row).collect(),
        caption: vec![
            format!("Model {model}, {} problems.", summary.n_problems),
            format!("Ribbons: 95 % intervals ({}).", intervals.into_iter().collect::<Vec<_>>().join(", ")),
            "Grey: no eviction.".to_owned(),
        ]
        .into_iter()
        .chain(left_out(summary))
        .collect(),
    })
}

/// Whether it ran under a budget that bound it.
fn evicted(group: &Group) -> bool {
    group.budget.is_some() && group.n_evictions > 0
}

/// That some groups are not drawn.
fn left_out(summary: &Summary) -> Option<String> {
    let n = summary.groups.iter().filter(|group| group.budget.is_some() && !evicted(group)).count();
    (n > 0).then(|| format!("Left out: {n} that evicted nothing."))
}

fn panel(summary: &Summary, names: &[&str], (x_label, x): Abscissa) -> Panel {
    let full = summary.groups.iter().find(|group| group.policy == crate::policy::registry::FULL);
    let point = |group: &Group| {
        let percent = |(lo, hi): (f64, f64)| (100.0 * lo, 100.0 * hi);
        Some(Point { x: x(group)?, y: 100.0 * group.accuracy?, interval: group.ci_lo.zip(group.ci_hi).map(percent) })
    };
    let level = full.and_then(|group| {
        // A budget does not bind it; its memory and time are places on their axes.
        let kind = if x(group).is_some() { LineKind::Marks } else { LineKind::Level };
        let place = Point { x: x(group).unwrap_or(0.0), ..point(group).or_else(|| at_zero(group))? };
        Some(Line { name: group.policy.clone(), kind, points: vec![place], look: 0 })
    });
    let line = |(at, name): (usize, &&str)| {
        let own = summary.groups.iter().filter(|group| group.policy == **name && evicted(group));
        let points = own.filter_map(point).collect();
        Line { name: (*name).to_owned(), kind: LineKind::Series, points, look: 1 + at }
    };
    Panel { x_label: x_label.to_owned(), lines: level.into_iter().chain(names.iter().enumerate().map(line)).collect() }
}

/// The accuracy of a group that has no place on the axis.
fn at_zero(group: &Group) -> Option<Point> {
    let bounds = group.ci_lo.zip(group.ci_hi).map(|(lo, hi)| (100.0 * lo, 100.0 * hi));
    Some(Point { x: 0.0, y: 100.0 * group.accuracy?, interval: bounds })
}
