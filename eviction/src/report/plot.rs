//! What a figure shows, before it is drawn.

use std::collections::BTreeSet;

use epikv_figures::quoted;

use crate::analysis::group::Group;
use crate::analysis::summary::Summary;

/// Policies of one row of panels; more could not be told apart.
const LINES_A_ROW: usize = 6;

/// A point with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// Place on the vertical axis.
    pub y: f64,
    /// Bounds of `y`.
    pub interval: Option<(f64, f64)>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Points joined, with a ribbon.
    Series,
    /// Points joined, without markers: a formula.
    Curve,
    /// Points alone: measured ones among those that were worked out.
    Marks,
    /// One value all along the axis, with a ribbon: what the others are compared with.
    Level,
}

/// A line of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub kind: LineKind,
    /// Its points.
    pub points: Vec<Point>,
    /// Which look it has: the same number, the same look in every panel.
    pub look: usize,
}

/// One pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What stands below the horizontal axis.
    pub x_label: String,
    /// Its lines, the first below the others.
    pub lines: Vec<Line>,
}

/// A figure: rows of panels that share the vertical axis, with a legend beside each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The title for readers that do not see it.
    pub title: String,
    /// What stands beside the vertical axis.
    pub y_label: String,
    /// End of the vertical axis; as the values ask where not given.
    pub y_max: Option<f64>,
    /// Rows of panels.
    pub rows: Vec<Vec<Panel>>,
    /// Sentences below.
    pub caption: Vec<String>,
}

/// A horizontal axis: its label, and where a group stands on it.
type Abscissa = (&'static str, fn(&Group) -> Option<f64>);

impl Plot {
    /// Accuracy against budget, against the mean of the tokens held and, where times may be compared, against time. `None`
    /// where nothing ran under a budget.
    pub fn of_accuracy(summary: &Summary, model: &str) -> Option<Self> {
        let evicting = summary.groups.iter().filter(|group| group.budget.is_some() && group.accuracy.is_some());
        let mut names: Vec<&str> = Vec::new();
        for group in evicting {
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
        Some(Self {
            title: "Accuracy against budget, memory and time".to_owned(),
            y_label: "right answers, %".to_owned(),
            y_max: Some(100.0),
            rows: names.chunks(LINES_A_ROW).map(row).collect(),
            caption: vec![
                format!("Model {model}, {} problems.", summary.n_problems),
                format!("Ribbons: 95 % intervals ({}).", intervals.into_iter().collect::<Vec<_>>().join(", ")),
                "Grey: no eviction.".to_owned(),
            ],
        })
    }

    /// The plotted numbers as CSV.
    pub fn csv(&self) -> String {
        let mut text = format!("panel,x_label,line,x,{},lo,hi\n", quoted(&self.y_label));
        for (at, panel) in self.rows.iter().flatten().enumerate() {
            for line in &panel.lines {
                for point in &line.points {
                    let end = |end: Option<f64>| end.map_or(String::new(), |end| end.to_string());
                    let (lo, hi) = (end(point.interval.map(|i| i.0)), end(point.interval.map(|i| i.1)));
                    let (label, name) = (quoted(&panel.x_label), quoted(&line.name));
                    let place = [at.to_string(), label, name, point.x.to_string(), point.y.to_string(), lo, hi];
                    text += &(place.join(",") + "\n");
                }
            }
        }
        text
    }
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
        let own = summary.groups.iter().filter(|group| group.policy == **name && group.budget.is_some());
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
