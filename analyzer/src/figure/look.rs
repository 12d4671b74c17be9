//! Colours, lines and sizes.

use super::plot::SeriesKind;

/// Colours of Okabe and Ito, told apart by people who see few; line style and marker tell the lines apart as well.
pub(super) struct Look {
    pub(super) colour: &'static str,
    pub(super) style: &'static str,
    /// Of the markers; `None` where the line has none.
    pub(super) radius: Option<f64>,
    pub(super) legend: &'static str,
    /// Style of the markers.
    pub(super) marker: &'static str,
}

pub(super) fn look(kind: SeriesKind) -> Look {
    match kind {
        SeriesKind::Pooled => Look {
            colour: "#0072b2",
            style: "stroke=\"#0072b2\" stroke-width=\"1.6\" stroke-linejoin=\"round\"",
            radius: Some(1.7),
            legend: "pooled, with trace bootstrap",
            marker: "fill=\"#0072b2\"",
        },
        SeriesKind::Within => Look {
            colour: "#009e73",
            style: "stroke=\"#009e73\" stroke-width=\"1.1\" stroke-dasharray=\"4 2\"",
            radius: None,
            legend: "within traces",
            marker: "fill=\"none\"",
        },
        SeriesKind::RandomWeights => Look {
            colour: "#595959",
            style: "stroke=\"#595959\" stroke-width=\"0.9\" stroke-dasharray=\"0.9 1.9\"",
            radius: None,
            legend: "random weights, pooled",
            marker: "fill=\"none\"",
        },
        SeriesKind::Reference => Look {
            colour: "#d55e00",
            style: "stroke=\"#d55e00\" stroke-width=\"1.0\"",
            radius: Some(1.3),
            legend: "published",
            marker: "fill=\"#ffffff\" stroke=\"#d55e00\" stroke-width=\"0.8\"",
        },
    }
}

/// How a line of a [`LineChart`](super::LineChart) is told from others: by colour, dashes and marker.
#[derive(Debug)]
pub(super) struct LineLook {
    pub(super) colour: &'static str,
    dashes: &'static str,
    pub(super) radius: f64,
    filled: bool,
}

impl LineLook {
    const fn new(colour: &'static str, dashes: &'static str, radius: f64, filled: bool) -> Self {
        Self { colour, dashes, radius, filled }
    }

    pub(super) fn style(&self) -> String {
        let dashes =
            if self.dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dashes) };
        format!("stroke=\"{}\" stroke-width=\"1.3\" stroke-linejoin=\"round\"{dashes}", self.colour)
    }

    pub(super) fn marker(&self) -> String {
        let Self { colour, filled, .. } = self;
        if *filled {
            format!("fill=\"{colour}\"")
        } else {
            format!("fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"0.8\"")
        }
    }
}

/// Looks of the lines of a figure, in their order.
pub(super) static LINE_LOOKS: [LineLook; 8] = [
    LineLook::new("#0072b2", "", 1.7, true),
    LineLook::new("#d55e00", "", 1.5, false),
    LineLook::new("#009e73", "4 2", 1.5, true),
    LineLook::new("#cc79a7", "4 2", 1.5, false),
    LineLook::new("#e69f00", "1 2", 1.5, true),
    LineLook::new("#56b4e9", "1 2", 1.5, false),
    LineLook::new("#595959", "6 2 1 2", 1.3, true),
    LineLook::new("#1a1a1a", "6 2 1 2", 1.3, false),
];
