//! Figures. What is drawn is data first: the same numbers become the SVG, the PNG and PDF made from it, the CSV beside them
//! and a Vega-Lite spec that reads the CSV.
//!
//! [`Plot`] is the detailed two-band figure of one problem set a panel. [`gallery()`] makes all others as [`Chart`]s of two
//! kinds: lines over layers and coloured cells.

mod axis;
mod chart;
mod choose;
mod gallery;
mod heat;
mod lines;
mod look;
mod panel;
mod pdf;
mod plot;
mod png;
mod svg;
mod vega;

pub use chart::{Chart, ENDINGS};
pub use choose::About;
pub use gallery::{GALLERY, gallery};
pub use heat::{HeatChart, HeatPanel};
pub use lines::{Line, LineChart, LinePanel, LinePoint};
pub use pdf::pdf;
pub use plot::{Panel, Plot, Point, Series, SeriesKind};
pub use png::png;
pub use svg::svg;
