//! What all figures share: elements of an SVG ([`Drawing`]), the page that they stand on ([`document`]), captions and names
//! that fit, fields of the CSV beside a figure.
//!
//! Everything is text with fixed digits, so that equal numbers give equal bytes. Lengths are points, so that text has its
//! stated size in print: 7 pt or more.
//!
//! Not here: what is drawn and where, which belongs to the crate whose numbers they are.
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

pub use chart::{Chart, ENDINGS};
pub use csv::{number, quoted};
pub use drawing::{Anchor, Drawing, Escaped, Length};
pub use error::{Error, Result};
pub use heat::{HeatChart, HeatPanel};
pub use page::{FONT, GREY, INK, LABEL, LETTER, SMALL, WIDTH, document, write_caption};
pub use png::png;
pub use words::{shortened, wrapped};
