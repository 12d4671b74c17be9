//! The two-band figure: rho over layers, with the trace bootstrap as a ribbon, the zero line and both bands shaded.
//!
//! What is drawn is data first ([`Plot`]): the same numbers become the SVG, the PNG made from it, and the CSV beside them.

mod axis;
mod choose;
mod drawing;
mod look;
mod panel;
mod plot;
mod png;
mod svg;

pub use choose::About;
pub use plot::{Panel, Plot, Point, Series, SeriesKind};
pub use png::png;
pub use svg::svg;
