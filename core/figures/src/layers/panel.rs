//! Where things lie on a page of panels, and what a panel has besides its lines: bands, axes and the zero line.

use std::ops::RangeInclusive;

use crate::axis::{RhoAxis, layer_ticks};
use crate::colours::{GREY, INK, THIN};
use crate::drawing::{Anchor, Drawing, Length};
use crate::page::{self, LABEL, SMALL, WIDTH};

pub(super) const LEFT: f64 = 42.0;
pub(crate) const RIGHT: f64 = 8.0;
pub(crate) const GAP: f64 = 16.0;
pub(crate) const TOP: f64 = 6.0;
/// Heading and ticks of a panel, above and below its axes.
pub(super) const HEADING: f64 = 25.0;
pub(super) const TICKS: f64 = 16.0;
/// Label of the axis of layers, below the last row.
pub(super) const AXIS: f64 = 12.0;
pub(super) const LEGEND_LINE: f64 = 13.0;

/// Height of the axes.
pub(super) const PLOT: f64 = 132.0;

/// A shaded band of layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shade {
    /// What is written in it.
    pub name: &'static str,
    /// Its layers.
    pub layers: RangeInclusive<usize>,
}

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
}

/// What the axes of a panel carry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes<'t> {
    pub(super) heading: &'t str,
    pub(super) note: &'t str,
    pub(super) y_label: &'t str,
    pub(super) bands: &'t [Shade],
    /// Whether the panel has the vertical axis to itself.
    pub(super) labelled: bool,
}

/// The left and lower edge, over everything else.
pub(super) fn draw_edges(drawing: &mut Drawing, frame: &Frame) {
    let (left, right, bottom) = (frame.left, frame.left + frame.width, frame.top + PLOT);
    drawing.line((left, frame.top), (left, bottom), THIN);
    drawing.line((left, bottom), (right, bottom), THIN);
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
        drawing.line((left - 3.0, y), (left, y), THIN);
        if axes.labelled {
            drawing.text((left - 5.0, y + 2.5), SMALL, Anchor::End, INK, &text);
        }
    }
    for layer in layer_ticks(frame.n_layers) {
        let x = frame.x(layer as f64);
        drawing.line((x, bottom), (x, bottom + 3.0), THIN);
        drawing.text((x, bottom + 11.0), SMALL, Anchor::Middle, INK, &layer.to_string());
    }
    if axes.labelled {
        let (x, y) = (Length(left - 31.0), Length(frame.top + PLOT / 2.0));
        drawing.turned(x, y, LABEL, Anchor::Middle, axes.y_label);
    }
    let zero = frame.y(0.0);
    drawing.line((left, zero), (right, zero), &format!("class=\"zero\" {THIN}"));
}

/// The sentences below a figure; returns the lower edge.
pub(crate) fn write_caption(drawing: &mut Drawing, caption: &[String], bottom: f64) -> f64 {
    page::write_caption(drawing, caption, LEFT, WIDTH - LEFT - RIGHT, bottom)
}
