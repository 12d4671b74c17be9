//! The page that a figure stands on.

use crate::colours::INK;
use crate::drawing::{Anchor, Drawing, Escaped};
use crate::words::wrapped;

/// The font that a PNG is drawn with; a browser takes the next one where it is not installed.
pub const FONT: &str = "Noto Sans";

/// A double-column figure, 6.75 inches.
pub const WIDTH: f64 = 486.0;

/// Size of small text.
pub const SMALL: f64 = 7.0;

/// Size of labels.
pub const LABEL: f64 = 8.0;

/// Mean width of a letter over the font size; a little more than it is, so that nothing overlaps.
pub const LETTER: f64 = 0.52;

/// From one line of a caption to the next.
const CAPTION_LINE: f64 = 9.6;

/// The whole file of a drawing of a given height.
pub fn document(title: &str, height: f64, drawing: &Drawing) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}pt\" height=\"{height:.2}pt\" \
         viewBox=\"0 0 {WIDTH} {height:.2}\" role=\"img\" font-family=\"{FONT}, Helvetica, Arial, sans-serif\">\n\
         <title>{}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height:.2}\" fill=\"#ffffff\"/>\n{}</svg>\n",
        Escaped(title),
        drawing.body
    )
}

/// Writes sentences below `bottom`, from `left` on and so wide; returns the lower edge.
pub fn write_caption(drawing: &mut Drawing, sentences: &[String], left: f64, width: f64, mut bottom: f64) -> f64 {
    for line in wrapped(&sentences.join(" "), (width / (SMALL * LETTER)) as usize) {
        bottom += CAPTION_LINE;
        drawing.text((left, bottom), SMALL, Anchor::Start, INK, &line);
    }
    bottom
}
