//! Colours, lines and sizes.

use crate::colours::{BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION};

/// How a line is told from others: by colour, dashes and marker.
#[derive(Debug, PartialEq)]
pub struct LineLook {
    pub(crate) colour: &'static str,
    dashes: &'static str,
    width: f64,
    pub(super) radius: f64,
    marker: Marker,
}

/// What stands at each point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// A filled circle.
    Filled,
    /// A circle.
    Open,
    /// Nothing to be seen: it carries the tooltip.
    Unseen,
}

impl LineLook {
    /// A colour (`#rrggbb`), dashes (as in an SVG; empty for none), the radius of its points, and what stands at them.
    pub const fn new(colour: &'static str, dashes: &'static str, radius: f64, marker: Marker) -> Self {
        Self { colour, dashes, width: 1.3, radius, marker }
    }

    /// The same with a line as wide as this; 1.3 else.
    #[must_use]
    pub const fn wide(self, width: f64) -> Self {
        Self { width, ..self }
    }

    pub(super) fn style(&self) -> String {
        let dashes =
            if self.dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dashes) };
        format!("stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"{dashes}", self.colour, self.width)
    }

    /// The style of a marker; a point that `is_alone`, between two gaps, is seen in any case.
    pub(super) fn marker(&self, is_alone: bool) -> String {
        let Self { colour, marker, .. } = self;
        match marker {
            Marker::Unseen if !is_alone => "fill=\"none\"".to_owned(),
            Marker::Open => format!("fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"0.8\""),
            Marker::Filled | Marker::Unseen => format!("fill=\"{colour}\""),
        }
    }
}

/// Looks of the lines of a figure, in their order.
pub(super) static LINE_LOOKS: [LineLook; 8] = [
    LineLook::new(BLUE, "", 1.7, Marker::Filled),
    LineLook::new(VERMILION, "", 1.5, Marker::Open),
    LineLook::new(GREEN, "4 2", 1.5, Marker::Filled),
    LineLook::new(PURPLE, "4 2", 1.5, Marker::Open),
    LineLook::new(ORANGE, "1 2", 1.5, Marker::Filled),
    LineLook::new(SKY, "1 2", 1.5, Marker::Open),
    LineLook::new(GREY, "6 2 1 2", 1.3, Marker::Filled),
    LineLook::new(INK, "6 2 1 2", 1.3, Marker::Open),
];
