//! A figure as SVG. Lengths are points, so that its text has the stated size in print: 7 pt or more. Numbers have fixed
//! digits, so that equal figures are equal bytes.

use super::{Line, LineKind, Panel, Plot, Point};
use crate::axis::Axis;
use crate::colours::{BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, THIN, VERMILION};
use crate::drawing::{Anchor, Drawing, Length};
use crate::page::{LABEL, LETTER, SMALL, WIDTH, document, write_caption};

const LEFT: f64 = 34.0;
/// Room of the legend.
const LEGEND: f64 = 112.0;
const GAP: f64 = 18.0;
const TOP: f64 = 10.0;
const PLOT: f64 = 118.0;
/// Ticks and label of the horizontal axis, and what lies between rows.
const BELOW: f64 = 34.0;
const LEGEND_LINE: f64 = 12.0;

/// Grey is for what is compared with; dashes and markers tell the lines apart as well.
const LOOKS: [(&str, &str, Marker); 7] = [
    (GREY, "0.9 1.9", Marker::Square),
    (BLUE, "", Marker::Circle),
    (VERMILION, "5 2", Marker::Square),
    (GREEN, "2 2", Marker::Triangle),
    (PURPLE, "7 2 1.5 2", Marker::Diamond),
    (ORANGE, "4 1.5", Marker::Circle),
    (SKY, "1.5 1.5", Marker::Square),
];

#[derive(Debug, Clone, Copy)]
enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
}

/// Where a panel lies and what its axes are.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    x: Axis,
    y: Axis,
}

impl Frame {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let up = (y / self.y.hi).clamp(0.0, 1.0);
        (self.left + x / self.x.hi * self.width, self.top + PLOT * (1.0 - up))
    }
}

/// Draws a figure.
pub fn svg(plot: &Plot) -> String {
    let mut drawing = Drawing::default();
    let columns = plot.rows.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let width = (WIDTH - LEFT - LEGEND - GAP * columns as f64) / columns as f64;
    let of_points = |panel: &Panel, of: fn(&Point) -> f64| -> Vec<f64> {
        panel.lines.iter().flat_map(|line| &line.points).map(of).collect()
    };
    let tops = plot.rows.iter().flatten().flat_map(|panel| of_points(panel, |p| p.interval.map_or(p.y, |i| i.1)));
    let y = Axis::over(plot.y_max.map_or_else(|| tops.collect(), |most| vec![most]));
    let mut top = TOP;
    for row in &plot.rows {
        for (at, panel) in row.iter().enumerate() {
            // Panels of a column share their axis.
            let below = plot.rows.iter().filter_map(|row| row.get(at));
            let x = Axis::over(below.flat_map(|panel| of_points(panel, |p| p.x)));
            let frame = Frame { left: LEFT + at as f64 * (width + GAP), top, width, x, y };
            draw_axes(&mut drawing, &frame, panel, (at == 0).then_some(plot.y_label.as_str()));
            panel.lines.iter().for_each(|line| draw_line(&mut drawing, &frame, line));
        }
        let lines = legend(row);
        for (i, line) in lines.iter().enumerate() {
            draw_key(&mut drawing, (WIDTH - LEGEND + 2.0, top + 6.0 + i as f64 * LEGEND_LINE), line);
        }
        top += BELOW + PLOT.max(lines.len() as f64 * LEGEND_LINE);
    }
    let bottom = write_caption(&mut drawing, &plot.caption, LEFT, WIDTH - LEFT, top - 2.0);
    document(&plot.title, bottom + 6.0, &drawing)
}

/// The lines that occur in a row, each once.
fn legend(row: &[Panel]) -> Vec<&Line> {
    let mut lines: Vec<&Line> = Vec::new();
    for line in row.iter().flat_map(|panel| &panel.lines) {
        if lines.iter().all(|known| known.name != line.name) {
            lines.push(line);
        }
    }
    lines
}

fn draw_axes(drawing: &mut Drawing, frame: &Frame, panel: &Panel, y_label: Option<&str>) {
    let (left, bottom) = frame.at(0.0, 0.0);
    for (value, label) in frame.y.ticks() {
        let (_, y) = frame.at(0.0, value);
        drawing.line((left, y), (left + frame.width, y), "stroke=\"#d9d9d9\" stroke-width=\"0.5\"");
        if y_label.is_some() {
            drawing.text((left - 4.0, y + 2.5), SMALL, Anchor::End, INK, &label);
        }
    }
    for (value, label) in frame.x.ticks() {
        let (x, _) = frame.at(value, 0.0);
        drawing.line((x, bottom), (x, bottom + 3.0), THIN);
        // Neighbouring labels may need more room than their ticks: then every other stays.
        let step = frame.width / (frame.x.ticks().len().max(2) - 1) as f64;
        let crowded = label.chars().count() as f64 * SMALL * LETTER + 3.0 > step;
        if !crowded || ((value / frame.x.hi * (frame.x.ticks().len() - 1) as f64).round() as usize).is_multiple_of(2) {
            drawing.text((x, bottom + 11.0), SMALL, Anchor::Middle, INK, &label);
        }
    }
    drawing.push(format_args!(
        "<rect x=\"{left:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{PLOT}\" fill=\"none\" {THIN}/>",
        frame.top, frame.width
    ));
    drawing.text((left + frame.width / 2.0, bottom + 21.0), LABEL, Anchor::Middle, INK, &panel.x_label);
    if let Some(label) = y_label {
        drawing.turned(Length(9.0), Length(frame.top + PLOT / 2.0), LABEL, Anchor::Middle, label);
    }
}

fn draw_line(drawing: &mut Drawing, frame: &Frame, line: &Line) {
    let (colour, dash, marker) = LOOKS[line.look % LOOKS.len()];
    let stroke = format!("stroke=\"{colour}\" stroke-width=\"1.3\" stroke-dasharray=\"{dash}\"");
    if line.kind == LineKind::Level {
        for point in &line.points {
            let ends = [Point { x: 0.0, ..*point }, Point { x: frame.x.hi, ..*point }];
            ribbon(drawing, frame, &ends, colour);
            polyline(drawing, frame, &ends, &stroke);
        }
        return;
    }
    if line.kind == LineKind::Curve {
        polyline(drawing, frame, &line.points, &stroke);
        return;
    }
    let joined = line.kind == LineKind::Series && line.points.len() > 1;
    if joined {
        polyline(drawing, frame, &line.points, &stroke);
    }
    // A ribbon that turns back would cover itself: time may fall as the budget rises.
    if joined && line.points.is_sorted_by(|a, b| a.x < b.x) {
        ribbon(drawing, frame, &line.points, colour);
    } else {
        for point in &line.points {
            if let Some((lo, hi)) = point.interval {
                let (from, to) = (frame.at(point.x, lo), frame.at(point.x, hi));
                drawing.push(format_args!(
                    "<line class=\"interval\" x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" stroke=\"{colour}\" \
                     stroke-width=\"1\" stroke-opacity=\"0.5\"/>",
                    from.0, from.1, to.0, to.1
                ));
            }
        }
    }
    line.points.iter().for_each(|point| draw_marker(drawing, frame.at(point.x, point.y), colour, marker));
}

fn polyline(drawing: &mut Drawing, frame: &Frame, points: &[Point], stroke: &str) {
    let points: Vec<(f64, f64)> = points.iter().map(|point| frame.at(point.x, point.y)).collect();
    drawing.polyline("line", &points, stroke);
}

/// The intervals of points along a line; a point without one ends it.
fn ribbon(drawing: &mut Drawing, frame: &Frame, points: &[Point], colour: &str) {
    for part in points.split(|point| point.interval.is_none()).filter(|part| part.len() > 1) {
        let bounds = |of: fn((f64, f64)) -> f64| part.iter().filter_map(move |p| Some((p.x, of(p.interval?))));
        let outline = bounds(|i| i.0).chain(bounds(|i| i.1).collect::<Vec<_>>().into_iter().rev());
        let outline: Vec<(f64, f64)> = outline.map(|(x, y)| frame.at(x, y)).collect();
        drawing.polygon("ribbon", &outline, &format!("fill=\"{colour}\" fill-opacity=\"0.12\""));
    }
}

fn draw_marker(drawing: &mut Drawing, (x, y): (f64, f64), colour: &str, marker: Marker) {
    let corners: &[(f64, f64)] = match marker {
        Marker::Circle => {
            return drawing
                .push(format_args!("<circle class=\"point\" cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"2\" fill=\"{colour}\"/>"));
        }
        Marker::Square => &[(-1.8, -1.8), (1.8, -1.8), (1.8, 1.8), (-1.8, 1.8)],
        Marker::Triangle => &[(0.0, -2.4), (2.3, 1.8), (-2.3, 1.8)],
        Marker::Diamond => &[(0.0, -2.6), (2.2, 0.0), (0.0, 2.6), (-2.2, 0.0)],
    };
    let corners: Vec<(f64, f64)> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    drawing.polygon("point", &corners, &format!("fill=\"{colour}\""));
}

/// A line of the legend.
fn draw_key(drawing: &mut Drawing, (x, y): (f64, f64), line: &Line) {
    let (colour, dash, marker) = LOOKS[line.look % LOOKS.len()];
    if line.kind != LineKind::Marks {
        let style = format!("stroke=\"{colour}\" stroke-width=\"1.3\" stroke-dasharray=\"{dash}\"");
        drawing.line((x, y), (x + 16.0, y), &style);
    }
    if line.kind != LineKind::Curve {
        draw_marker(drawing, (x + 8.0, y), colour, marker);
    }
    // A composition may be long; its end says what was changed.
    let most = ((LEGEND - 24.0) / (SMALL * LETTER)) as usize;
    let n = line.name.chars().count();
    let name = if n > most {
        format!("\u{2026}{}", line.name.chars().skip(n - most + 1).collect::<String>())
    } else {
        line.name.clone()
    };
    drawing.text((x + 20.0, y + 2.5), SMALL, Anchor::Start, INK, &name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let point = |x: f64, y: f64| Point { x, y, interval: Some((y - 10.0, y + 10.0)) };
        let lines = vec![
            Line { name: "full".to_owned(), kind: LineKind::Level, points: vec![point(0.0, 80.0)], look: 0 },
            Line {
                name: "a<b".to_owned(),
                kind: LineKind::Series,
                points: vec![point(8.0, 20.0), point(16.0, 40.0)],
                look: 1,
            },
            Line { name: "one".to_owned(), kind: LineKind::Series, points: vec![point(8.0, 30.0)], look: 2 },
        ];
        let panel = |label: &str| Panel { x_label: label.to_owned(), lines: lines.clone() };
        Plot {
            title: "t".to_owned(),
            y_label: "%".to_owned(),
            y_max: Some(100.0),
            rows: vec![vec![panel("budget"), panel("held")]],
            caption: vec!["One sentence.".to_owned()],
        }
    }

    #[test]
    fn every_line_is_drawn_with_its_interval() {
        let drawn = svg(&plot());
        assert_eq!(drawn, svg(&plot()));
        // The level and the series have ribbons, the single point a bar, in both panels.
        assert_eq!(drawn.matches("class=\"ribbon\"").count(), 4);
        assert_eq!(drawn.matches("class=\"interval\"").count(), 2);
        assert_eq!(drawn.matches("class=\"line\"").count(), 4);
        assert!(drawn.contains(">a&lt;b<") && drawn.contains(">budget<") && drawn.contains("One sentence."));
        assert_eq!(drawn.matches(">full<").count(), 1, "one legend a row");
    }

    #[test]
    fn what_is_empty_is_drawn_too() {
        let empty = Plot { rows: Vec::new(), ..plot() };
        assert!(svg(&empty).starts_with("<svg"));
        let no_lines =
            Plot { rows: vec![vec![Panel { x_label: String::new(), lines: Vec::new() }]], y_max: None, ..plot() };
        assert!(svg(&no_lines).contains("</svg>"));
    }

    #[test]
    fn the_csv_holds_the_points() {
        let csv = plot().csv();
        assert_eq!(csv.lines().count(), 1 + 2 * 4);
        assert_eq!(csv.lines().nth(2), Some("0,budget,a<b,8,20,10,30"));
    }
}
