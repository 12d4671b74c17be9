//! Lines over layers: panels side by side, each line with a ribbon, whiskers or neither, the zero line and shaded bands.

use super::look::{LINE_LOOKS, LineLook};
use super::panel::{
    AXIS, Axes, Frame, GAP, HEADING, LEFT, LEGEND_LINE, PLOT, RIGHT, Shade, TICKS, TOP, draw_axes, draw_edges,
    write_caption,
};
use crate::axis::RhoAxis;
use crate::colours::INK;
use crate::csv::{number, push_row, quoted};
use crate::drawing::{Anchor, Drawing, Escaped, Length};
use crate::page::{LABEL, WIDTH, document};
use crate::words::shortened;

/// Entries of a line of the legend.
const LEGEND_COLUMNS: usize = 2;

/// A point; `None` leaves a gap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LinePoint {
    /// The layer, 0-based; of the reference model for published points.
    pub layer: usize,
    /// Its place on the axis of layers; `None` for that of the layer.
    pub place: Option<f64>,
    /// Its height.
    pub y: Option<f64>,
    /// Bounds drawn as an area.
    pub ribbon: Option<(f64, f64)>,
    /// Bounds drawn as a bar.
    pub whisker: Option<(f64, f64)>,
}

impl LinePoint {
    /// Where it stands on the axis of layers.
    fn x(&self) -> f64 {
        self.place.unwrap_or(self.layer as f64)
    }
}

/// A line of a panel; lines of one name look alike in all panels.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What the legend says.
    pub name: String,
    /// Its points, by layer.
    pub points: Vec<LinePoint>,
    look: Option<&'static LineLook>,
}

impl Line {
    /// A line that looks as its place among the lines says.
    pub fn new(name: impl Into<String>, points: Vec<LinePoint>) -> Self {
        Self { name: name.into(), points, look: None }
    }

    /// The same with a look of its own.
    #[must_use]
    pub fn looking(self, look: &'static LineLook) -> Self {
        Self { look: Some(look), ..self }
    }
}

/// Lines on the same axes.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePanel {
    /// Above the axes.
    pub heading: String,
    /// Below the heading, smaller.
    pub note: String,
    /// Its lines, the first drawn on top.
    pub lines: Vec<Line>,
}

/// A figure of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    /// Stem of its files.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// What the height means.
    pub y_label: &'static str,
    /// Layers of the model.
    pub n_layers: usize,
    /// Shaded bands.
    pub bands: Vec<Shade>,
    /// Panels, row by row.
    pub panels: Vec<LinePanel>,
    /// Panels of a row.
    pub columns: usize,
    /// Sentences below the figure.
    pub caption: Vec<String>,
}

impl LineChart {
    /// Names of the lines in the order in which they first come, with their looks.
    pub(crate) fn looks(&self) -> Vec<(&str, &'static LineLook)> {
        let mut looks: Vec<(&str, &'static LineLook)> = Vec::new();
        for line in self.panels.iter().flat_map(|panel| &panel.lines) {
            if !looks.iter().any(|(name, _)| *name == line.name) {
                looks.push((&line.name, line.look.unwrap_or(&LINE_LOOKS[looks.len() % LINE_LOOKS.len()])));
            }
        }
        looks
    }

    pub(crate) fn csv(&self) -> String {
        let mut text = String::from("panel,line,layer,x,y,ribbon_lo,ribbon_hi,whisker_lo,whisker_hi\n");
        for panel in &self.panels {
            for line in &panel.lines {
                for point in &line.points {
                    let bounds = [point.ribbon, point.whisker].map(Option::unzip);
                    let (layer, x) = (point.layer.to_string(), point.x().to_string());
                    let mut row = vec![quoted(&panel.heading), quoted(&line.name), layer, x, number(point.y)];
                    row.extend(bounds.into_iter().flat_map(|(lo, hi)| [number(lo), number(hi)]));
                    push_row(&mut text, &row);
                }
            }
        }
        text
    }

    pub(crate) fn svg(&self) -> String {
        let columns = self.columns.max(1);
        let rows = self.panels.len().div_ceil(columns);
        let width = (WIDTH - LEFT - RIGHT - GAP * (columns - 1) as f64) / columns as f64;
        let rho = RhoAxis::over(self.panels.iter().flat_map(values));
        let looks = self.looks();
        let mut drawing = Drawing::default();
        for (at, panel) in self.panels.iter().enumerate() {
            let (row, column) = (at / columns, at % columns);
            let top = TOP + HEADING + row as f64 * (HEADING + PLOT + TICKS);
            let frame = Frame { left: LEFT + column as f64 * (width + GAP), top, width, n_layers: self.n_layers, rho };
            let heading = shortened(&panel.heading);
            let axes = Axes {
                heading: &heading,
                note: &panel.note,
                y_label: self.y_label,
                bands: &self.bands,
                labelled: column == 0,
            };
            draw_axes(&mut drawing, &frame, &axes);
            for line in panel.lines.iter().rev() {
                draw_bounds(&mut drawing, line, &frame, look_of(&looks, &line.name));
            }
            for line in panel.lines.iter().rev() {
                draw_line(&mut drawing, (at, line), &frame, look_of(&looks, &line.name));
            }
            draw_edges(&mut drawing, &frame);
            if row + 1 == rows {
                let (x, y) = (frame.left + width / 2.0, top + PLOT + TICKS + 7.0);
                drawing.text((x, y), LABEL, Anchor::Middle, INK, "layer");
            }
        }
        let bottom = TOP + rows as f64 * (HEADING + PLOT + TICKS) + AXIS;
        let bottom = legend(&mut drawing, &looks, bottom + 4.0);
        let bottom = write_caption(&mut drawing, &self.caption, bottom);
        document(&self.title, bottom + 6.0, &drawing)
    }
}

/// Everything that must lie inside the vertical axis.
fn values(panel: &LinePanel) -> impl Iterator<Item = f64> + '_ {
    let points = panel.lines.iter().flat_map(|line| &line.points);
    points
        .flat_map(|p| p.y.into_iter().chain([p.ribbon, p.whisker].into_iter().flatten().flat_map(|(lo, hi)| [lo, hi])))
}

fn look_of(looks: &[(&str, &'static LineLook)], name: &str) -> &'static LineLook {
    looks.iter().find(|(known, _)| *known == name).map_or(&LINE_LOOKS[0], |(_, look)| look)
}

fn draw_bounds(drawing: &mut Drawing, line: &Line, frame: &Frame, look: &LineLook) {
    let colour = look.colour;
    for run in line.points.chunk_by(|a, b| a.ribbon.is_some() == b.ribbon.is_some()) {
        let bound =
            |of: fn((f64, f64)) -> f64| run.iter().filter_map(move |p| Some((frame.x(p.x()), frame.y(of(p.ribbon?)))));
        let (upper, lower): (Vec<_>, Vec<_>) = (bound(|b| b.1).collect(), bound(|b| b.0).collect());
        match (upper.as_slice(), lower.as_slice()) {
            ([], _) => {}
            ([top], [bottom]) => {
                let style = format!("class=\"ribbon\" stroke=\"{colour}\" stroke-opacity=\"0.16\" stroke-width=\"5\"");
                drawing.line(*top, *bottom, &style);
            }
            _ => {
                let around: Vec<(f64, f64)> = upper.into_iter().chain(lower.into_iter().rev()).collect();
                drawing.polygon("ribbon", &around, &format!("fill=\"{colour}\" fill-opacity=\"0.16\""));
            }
        }
    }
    for point in &line.points {
        let Some((lo, hi)) = point.whisker else { continue };
        let x = frame.x(point.x());
        let style = format!("class=\"whisker\" stroke=\"{colour}\" stroke-width=\"0.7\" stroke-opacity=\"0.8\"");
        drawing.line((x, frame.y(lo)), (x, frame.y(hi)), &style);
    }
}

/// A line with gaps where a value is undefined, and a marker with a tooltip at each point.
fn draw_line(drawing: &mut Drawing, (panel, line): (usize, &Line), frame: &Frame, look: &LineLook) {
    let at = |p: &LinePoint| Some((frame.x(p.x()), frame.y(p.y?)));
    for run in line.points.chunk_by(|a, b| a.y.is_some() == b.y.is_some()) {
        let points: Vec<(f64, f64)> = run.iter().filter_map(at).collect();
        if points.len() > 1 {
            drawing.polyline("line", &points, &look.style());
        }
    }
    for run in line.points.chunk_by(|a, b| a.y.is_some() == b.y.is_some()) {
        let marker = look.marker(run.len() == 1);
        for point in run {
            let (Some((x, y)), Some(value)) = (at(point), point.y) else { continue };
            let bounds = point.ribbon.or(point.whisker);
            let bounds = bounds.map_or_else(String::new, |(lo, hi)| format!(" [{lo:.3}, {hi:.3}]"));
            drawing.push(format_args!(
                "<circle class=\"point\" data-panel=\"{panel}\" data-line=\"{}\" data-layer=\"{}\" cx=\"{}\" cy=\"{}\" \
                 r=\"{}\" {marker}><title>{}, layer {}: {value:.3}{bounds}</title></circle>",
                Escaped(&line.name),
                point.layer,
                Length(x),
                Length(y),
                look.radius,
                Escaped(&line.name),
                point.layer
            ));
        }
    }
}

/// The lines by name; returns the lower edge.
fn legend(drawing: &mut Drawing, looks: &[(&str, &'static LineLook)], top: f64) -> f64 {
    let mut y = top + 8.0;
    for (at, (name, look)) in looks.iter().enumerate() {
        let (row, column) = (at / LEGEND_COLUMNS, at % LEGEND_COLUMNS);
        let x = LEFT + column as f64 * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS as f64;
        y = top + 8.0 + row as f64 * LEGEND_LINE;
        let middle = y - 2.8;
        drawing.line((x, middle), (x + 20.0, middle), &look.style());
        drawing.push(format_args!(
            "<circle cx=\"{:.2}\" cy=\"{middle:.2}\" r=\"{}\" {}/>",
            x + 10.0,
            look.radius,
            look.marker(false)
        ));
        drawing.text((x + 24.0, y), LABEL, Anchor::Start, INK, &shortened(name));
    }
    y + 4.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::layers::look::Marker;

    pub(crate) fn chart() -> LineChart {
        let point = |layer: usize, y: f64| LinePoint {
            layer,
            y: (layer != 2).then_some(y),
            ribbon: (layer < 2).then_some((y - 0.1, y + 0.1)),
            whisker: Some((y - 0.2, y + 0.15)),
            place: None,
        };
        let line = |name: &str, slope: f64| {
            Line::new(name, (0..4).map(|layer| point(layer, slope * layer as f64 - 0.1)).collect())
        };
        let panel = |heading: &str| LinePanel {
            heading: heading.to_owned(),
            note: "n_eff 4".to_owned(),
            lines: vec![line("one, <a>", 0.1), line("two", -0.05)],
        };
        LineChart {
            name: "figure_test",
            title: "A test".to_owned(),
            y_label: "rho",
            n_layers: 4,
            bands: [("A", 1..=1), ("B", 2..=3)].map(|(name, layers)| Shade { name, layers }).to_vec(),
            panels: vec![panel("mean64"), panel("z64")],
            columns: 2,
            caption: vec!["A sentence.".to_owned()],
        }
    }

    #[test]
    fn the_csv_is_whole_and_the_drawing_the_same_each_time() {
        let chart = chart();
        let csv = chart.csv();
        assert_eq!(csv.lines().count(), 1 + 2 * 2 * 4);
        assert_eq!(
            csv.lines().nth(1),
            Some("mean64,\"one, <a>\",0,0,-0.1,-0.2,0,-0.30000000000000004,0.04999999999999999")
        );
        let svg = chart.svg();
        assert_eq!(svg, super::LineChart::svg(&chart));
        assert_eq!((svg.matches("class=\"point\"").count(), svg.matches("class=\"whisker\"").count()), (12, 16));
        assert_eq!((svg.matches("<polygon class=\"ribbon\"").count(), svg.matches("class=\"band\"").count()), (4, 4));
        assert!(svg.contains("data-line=\"one, &lt;a&gt;\""));
        assert!(svg.find("data-line=\"two\"") < svg.find("data-line=\"one"), "the first line lies on top");
        let empty = LineChart { panels: Vec::new(), n_layers: 0, ..chart };
        assert!(empty.svg().starts_with("<svg"));
    }

    #[test]
    fn lines_keep_their_looks_and_points_their_places() {
        static UNSEEN: LineLook = LineLook::new("#123456", "4 2", 1.2, Marker::Unseen);
        let mut chart = chart();
        let point = LinePoint { layer: 31, place: Some(3.4375), y: Some(0.2), ..LinePoint::default() };
        let gaps = [0, 2].map(|layer| LinePoint { layer, y: Some(0.0), ..LinePoint::default() });
        let undefined = LinePoint { layer: 1, ..LinePoint::default() };
        let published = Line::new("published", vec![point]).looking(&LINE_LOOKS[1]);
        let within = Line::new("within", vec![gaps[0], undefined, gaps[1], LinePoint { layer: 3, ..gaps[1] }]);
        let lines = vec![published, within.looking(&UNSEEN)];
        chart.panels = vec![LinePanel { lines, ..chart.panels[0].clone() }];
        assert!(chart.csv().contains("published,31,3.4375,0.2,"), "{}", chart.csv());
        let svg = chart.svg();
        let circles = |colour: &str| svg.matches(&format!("r=\"1.2\" fill=\"{colour}\"><title>within")).count();
        assert_eq!((circles("#123456"), circles("none")), (1, 2), "only the point between two gaps is seen");
        assert_eq!(svg.matches("<polyline class=\"line\"").count(), 1);
    }
}
