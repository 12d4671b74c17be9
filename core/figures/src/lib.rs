//! The figures of all commands: charts, and what they are drawn with.
//!
//! A chart is data first. There are three kinds: lines over the layers of a model ([`layers`]) and coloured cells
//! ([`HeatChart`]), which are a [`Chart`], and curves over a quantity from zero up ([`plot`]). The same numbers become an SVG,
//! the PNG made from it ([`png()`]), a CSV and, for a [`Chart`], a Vega-Lite spec that reads the CSV.
//!
//! Below them are the elements of an SVG ([`Drawing`]), the page that they stand on ([`document`]), captions and names that
//! fit, colours, ticks, and fields of a CSV.
//!
//! Everything is text with fixed digits, so that equal numbers give equal bytes. Lengths are points, so that text has its
//! stated size in print: 7 pt or more.
//!
//! Not here: which numbers a figure shows and what its caption says. That belongs to the crate whose numbers they are.
//!
//! ```
//! use epikv_figures::{Anchor, Drawing, INK, SMALL, document};
//!
//! let mut drawing = Drawing::default();
//! drawing.line((0.0, 4.0), (20.0, 4.0), "stroke=\"#000000\"");
//! drawing.text((24.0, 6.0), SMALL, Anchor::Start, INK, "a < b");
//! assert!(document("a line", 12.0, &drawing).contains(">a &lt; b<"));
//! ```

mod axis;
mod chart;
mod colours;
mod csv;
mod drawing;
mod error;
mod heat;
pub mod layers;
mod page;
pub mod plot;
mod png;
mod vega;
mod words;

pub use axis::round_step;
pub use chart::{Chart, ENDINGS};
pub use colours::{BLUE, GREEN, GREY, INK, ORANGE, PURPLE, SKY, VERMILION};
pub use csv::{number, push_row, quoted};
pub use drawing::{Anchor, Drawing, Escaped, Length};
pub use error::{Error, Result};
pub use heat::{HeatChart, HeatPanel};
pub use page::{FONT, LABEL, LETTER, SMALL, WIDTH, document, write_caption};
pub use png::png;
pub use words::{shortened, wrapped};
