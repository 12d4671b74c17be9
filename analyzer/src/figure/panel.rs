//! One panel: bands, axes, the zero line, ribbons and lines.

use epikv_figures::{Anchor, Drawing, Escaped, GREY, INK, LABEL, Length, SMALL, shortened};

use super::axis::{RhoAxis, layer_ticks};
use super::look::look;
use super::plot::{Panel, Plot, Point, Series};
use crate::bands::Band;

/// Height of the axes.
pub(super) const PLOT: f64 = 132.0;

/// Where the axes of a panel lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) n_layers: usize,
    pub(super) rho: RhoAxis,
}

impl Frame {
    /// Half a layer of room on each side.
    pub(super) fn x(&self, place: f64) -> f64 {
        self.left + self.width * (place + 0.5) / self.n_layers.max(1) as f64
    }

    pub(super) fn y(&self, rho: f64) -> f64 {
        self.top + PLOT * (self.rho.hi() - rho) / (self.rho.hi() - self.rho.lo())
    }

    fn at(&self, point: &Point) -> Option<(f64, f64)> {
        Some((self.x(point.x), self.y(point.rho?)))
    }
}

/// What the axes of a panel carry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes<'t> {
    pub(super) heading: &'t str,
    pub(super) note: &'t str,
    pub(super) y_label: &'t str,
    pub(super) bands: &'t [Band],
    /// Whether the panel has the vertical axis to itself.
    pub(super) labelled: bool,
}

/// Draws a panel; `labelled` says whether it has the axis of rho to itself.
pub(super) fn draw_panel(drawing: &mut Drawing, plot: &Plot, panel: &Panel, frame: &Frame, labelled: bool) {
    let heading = format!("{}, {}", shortened(&panel.dataset), panel.smoothing);
    let (bands, y_label) = (&plot.bands, "Spearman's rho");
    let axes = Axes { heading: &heading, note: &panel.counts, y_label, bands, labelled };
    draw_axes(drawing, frame, &axes);
    for series in &panel.series {
        ribbon(drawing, series, frame);
    }
    for series in &panel.series {
        draw_series(drawing, series, frame);
    }
    draw_edges(drawing, frame);
}

/// The left and lower edge, over everything else.
pub(super) fn draw_edges(drawing: &mut Drawing, frame: &Frame) {
    let (left, right, bottom) = (frame.left, frame.left + frame.width, frame.top + PLOT);
    drawing.line((left, frame.top), (left, bottom), &format!("stroke=\"{INK}\" stroke-width=\"0.6\""));
    drawing.line((left, bottom), (right, bottom), &format!("stroke=\"{INK}\" stroke-width=\"0.6\""));
}

/// Heading, bands, ticks and the zero line.
pub(super) fn draw_axes(drawing: &mut Drawing, frame: &Frame, axes: &Axes<'_>) {
    let (left, right, bottom) = (frame.left, frame.left + frame.width, frame.top + PLOT);
    drawing.text((left, frame.top - 14.5), LABEL, Anchor::Start, INK, axes.heading);
    drawing.text((left, frame.top - 5.0), SMALL, Anchor::Start, GREY, axes.note);
    for band in axes.bands {
        let (from, to) = (frame.x(*band.layers.start() as f64 - 0.5), frame.x(*band.layers.end() as f64 + 0.5));
        drawing.push(format_args!(
            "<rect class=\"band\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{PLOT}\" fill=\"#ebebeb\" stroke=\"#ffffff\" stroke-width=\"0.8\"/>",
            Length(from),
            Length(frame.top),
            Length(to - from)
        ));
        drawing.text((f64::midpoint(from, to), frame.top + 9.0), LABEL, Anchor::Middle, GREY, band.name);
    }
    for (value, text) in frame.rho.ticks() {
        let y = frame.y(value);
        drawing.line((left - 3.0, y), (left, y), &format!("stroke=\"{INK}\" stroke-width=\"0.6\""));
        if axes.labelled {
            drawing.text((left - 5.0, y + 2.5), SMALL, Anchor::End, INK, &text);
        }
    }
    for layer in layer_ticks(frame.n_layers) {
        let x = frame.x(layer as f64);
        drawing.line((x, bottom), (x, bottom + 3.0), &format!("stroke=\"{INK}\" stroke-width=\"0.6\""));
        drawing.text((x, bottom + 11.0), SMALL, Anchor::Middle, INK, &layer.to_string());
    }
    if axes.labelled {
        let (x, y) = (left - 31.0, frame.top + PLOT / 2.0);
        drawing.push(format_args!(
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{LABEL}\" text-anchor=\"middle\" fill=\"{INK}\" \
             transform=\"rotate(-90 {x:.2} {y:.2})\">{}</text>",
            Escaped(axes.y_label)
        ));
    }
    let zero = frame.y(0.0);
    drawing.line((left, zero), (right, zero), &format!("class=\"zero\" stroke=\"{INK}\" stroke-width=\"0.6\""));
}

/// The intervals of a line: a ribbon over each run of layers that have one, a bar where a layer stands alone.
fn ribbon(drawing: &mut Drawing, series: &Series, frame: &Frame) {
    let class = format!("{}-interval", series.kind.name());
    let colour = look(series.kind).colour;
    for run in series.points.chunk_by(|a, b| a.interval.is_some() == b.interval.is_some()) {
        let bound =
            |of: fn((f64, f64)) -> f64| run.iter().filter_map(move |p| Some((frame.x(p.x), frame.y(of(p.interval?)))));
        let upper: Vec<(f64, f64)> = bound(|i| i.1).collect();
        let lower: Vec<(f64, f64)> = bound(|i| i.0).collect();
        match (upper.as_slice(), lower.as_slice()) {
            ([top], [bottom]) => {
                let style = format!("class=\"{class}\" stroke=\"{colour}\" stroke-opacity=\"0.25\" stroke-width=\"5\"");
                drawing.line(*top, *bottom, &style);
            }
            ([], _) => {}
            _ => {
                let around: Vec<(f64, f64)> = upper.into_iter().chain(lower.into_iter().rev()).collect();
                drawing.polygon(&class, &around, &format!("fill=\"{colour}\" fill-opacity=\"0.2\""));
            }
        }
    }
}

/// A line with gaps where a value is undefined, and a marker with a tooltip at each point.
fn draw_series(drawing: &mut Drawing, series: &Series, frame: &Frame) {
    let (class, look) = (series.kind.name(), look(series.kind));
    for run in series.points.chunk_by(|a, b| a.rho.is_some() == b.rho.is_some()) {
        let points: Vec<(f64, f64)> = run.iter().filter_map(|p| frame.at(p)).collect();
        if points.len() > 1 {
            drawing.polyline(class, &points, look.style);
        }
    }
    // Markers carry the tooltips, so a line without any has unseen ones; a layer between two gaps is seen in any case.
    for run in series.points.chunk_by(|a, b| a.rho.is_some() == b.rho.is_some()) {
        let marker = match look.radius {
            None if run.len() == 1 => format!("r=\"1.2\" fill=\"{}\"", look.colour),
            radius => format!("r=\"{}\" {}", radius.unwrap_or(1.2), look.marker),
        };
        for point in run {
            let (Some((x, y)), Some(rho)) = (frame.at(point), point.rho) else { continue };
            let interval = point.interval.map_or_else(String::new, |(lo, hi)| format!(" [{lo:.3}, {hi:.3}]"));
            drawing.push(format_args!(
                "<circle class=\"{class}\" data-layer=\"{}\" cx=\"{}\" cy=\"{}\" {marker}>\
                 <title>layer {}: {rho:.3}{interval}</title></circle>",
                point.layer,
                Length(x),
                Length(y),
                point.layer
            ));
        }
    }
}
