//! Figures. What is drawn is data first: the same numbers become the SVG, the PNG made from it, the CSV beside them
//! and a Vega-Lite spec that reads the CSV.
//!
//! [`gallery()`] makes [`Chart`]s of two kinds: lines over layers and coloured cells. The first is the detailed two-band figure
//! of one problem set a panel.

mod axis;
mod chart;
mod gallery;
mod heat;
mod lines;
mod look;
mod panel;
mod png;
mod vega;

pub use chart::{Chart, ENDINGS};
pub use gallery::{About, GALLERY, LAYERS, gallery};
pub use heat::{HeatChart, HeatPanel};
pub use lines::{Line, LineChart, LinePanel, LinePoint};
pub use png::png;
