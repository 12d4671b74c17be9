//! Pixels from the SVG, by a renderer and a font embedded in the binary. Fonts of the machine are not used, so the
//! picture is the same everywhere.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use crate::error::{Error, Result};
use crate::page::FONT;

/// Dots of an inch, of which a figure has 72 points.
const DOTS_PER_INCH: f32 = 300.0;
const POINTS_PER_INCH: f32 = 72.0;

/// Renders an SVG of ours at 300 dots an inch, its letters as outlines of the font that the binary carries.
///
/// # Errors
/// If it is no SVG, or too large to hold.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    /// Noto Sans, under the SIL Open Font License 1.1; read once.
    static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
        let mut fonts = Database::new();
        fonts.load_font_data(notosans::REGULAR_TTF.to_vec());
        fonts.set_sans_serif_family(FONT);
        Arc::new(fonts)
    });
    // Lengths are points.
    let options = Options {
        fontdb: Arc::clone(&FONTS),
        font_family: FONT.to_owned(),
        dpi: POINTS_PER_INCH,
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(|error| failed("an SVG")(&error))?;
    let scale = DOTS_PER_INCH / POINTS_PER_INCH;
    let size = tree.size();
    let (width, height) = ((size.width() * scale).ceil() as u32, (size.height() * scale).ceil() as u32);
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| failed("a picture that fits into memory")(&format!("{width} x {height} pixels")))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed("a PNG")(&error))
}

fn failed(expected: &'static str) -> impl Fn(&dyn std::fmt::Display) -> Error {
    move |error| Error::Drawing { expected, got: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_drawn_without_fonts_of_the_machine() {
        let with = |text: &str| {
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"12\" font-family=\"{FONT}\">\
                 <rect width=\"40\" height=\"12\" fill=\"white\"/><text x=\"2\" y=\"10\" font-size=\"8\">{text}</text></svg>"
            );
            Pixmap::decode_png(&png(&svg).expect("an SVG")).expect("a PNG")
        };
        let dark = |pixels: &Pixmap| pixels.pixels().iter().filter(|p| p.red() < 128).count();
        let blank = with("");
        assert_eq!((blank.width(), blank.height(), dark(&blank)), (167, 50, 0));
        let letters = ["\u{3c1}", "\u{2212}", "l"].map(|text| dark(&with(text)));
        assert!(letters.iter().all(|&n| n > 10), "{letters:?}");
    }

    #[test]
    fn what_is_no_svg_is_an_error() {
        assert!(
            png("<svg").expect_err("cut short").to_string().starts_with("drawing the figure: expected an SVG, got ")
        );
    }
}
