//! Curves over a quantity from zero up: rows of panels that share the vertical axis.

mod svg;

pub use svg::svg;

use crate::csv::{number, push_row, quoted};

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

impl Plot {
    /// The plotted numbers as CSV.
    pub fn csv(&self) -> String {
        let mut text = format!("panel,x_label,line,x,{},lo,hi\n", quoted(&self.y_label));
        for (at, panel) in self.rows.iter().flatten().enumerate() {
            for line in &panel.lines {
                for point in &line.points {
                    let (lo, hi) = point.interval.unzip();
                    let (label, name) = (quoted(&panel.x_label), quoted(&line.name));
                    let place =
                        [at.to_string(), label, name, point.x.to_string(), point.y.to_string(), number(lo), number(hi)];
                    push_row(&mut text, &place);
                }
            }
        }
        text
    }
}
