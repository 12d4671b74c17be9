//! A figure as data: from the same numbers come the SVG, the PNG, the CSV and the Vega-Lite spec.

use crate::error::Result;
use crate::heat::HeatChart;
use crate::layers::LineChart;
use crate::png::png;
use crate::vega;

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Lines over layers.
    Lines(LineChart),
    /// Coloured cells.
    Heat(HeatChart),
}

/// Endings of the files of a figure, in the order of [`Chart::files`].
pub const ENDINGS: [&str; 4] = ["svg", "png", "csv", "vl.json"];

impl Chart {
    /// Stem of its files: `figure_bands`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lines(chart) => chart.name,
            Self::Heat(chart) => chart.name,
        }
    }

    /// What it shows, in a few words.
    pub fn title(&self) -> &str {
        match self {
            Self::Lines(chart) => &chart.title,
            Self::Heat(chart) => &chart.title,
        }
    }

    /// The drawing. Equal charts give equal bytes.
    pub fn svg(&self) -> String {
        match self {
            Self::Lines(chart) => chart.svg(),
            Self::Heat(chart) => chart.svg(),
        }
    }

    /// The drawn numbers, in full.
    pub fn csv(&self) -> String {
        match self {
            Self::Lines(chart) => chart.csv(),
            Self::Heat(chart) => chart.csv(),
        }
    }

    /// The same figure for Vega-Lite; it reads the CSV beside it.
    pub fn vega(&self) -> String {
        match self {
            Self::Lines(chart) => vega::lines(chart),
            Self::Heat(chart) => vega::heat(chart),
        }
    }

    /// Name and content of every file of the figure.
    ///
    /// # Errors
    /// If it is too large to hold as a picture.
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let svg = self.svg();
        let contents = [png(&svg)?, self.csv().into_bytes(), self.vega().into_bytes()];
        let all = std::iter::once(svg.into_bytes()).chain(contents);
        Ok(ENDINGS.iter().map(|ending| format!("{}.{ending}", self.name())).zip(all).collect())
    }
}
