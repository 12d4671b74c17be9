//! Elements of an SVG, written as text with fixed digits so that equal numbers give equal bytes.

use std::fmt::{self, Write as _};

use crate::colours::INK;

/// Text as it may stand in an element or attribute; control characters, which XML does not have, become spaces.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'t>(pub &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_char(' ')?,
                letter if letter.is_control() => f.write_char(' ')?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// A length with two digits, and no minus before zero.
#[derive(Debug, Clone, Copy)]
pub struct Length(pub f64);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        write!(f, "{:.2}", if rounded == 0.0 { 0.0 } else { rounded })
    }
}

/// Where a text is anchored.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// At its start.
    Start,
    /// At its middle.
    Middle,
    /// At its end.
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A body that grows.
#[derive(Debug, Default)]
pub struct Drawing {
    /// The elements so far, one a line.
    pub body: String,
}

impl Drawing {
    /// Adds an element as it is.
    pub fn push(&mut self, element: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }

    /// Adds a text.
    pub fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, colour: &str, text: &str) {
        self.push(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" text-anchor=\"{}\" fill=\"{colour}\">{}</text>",
            Length(at.0),
            Length(at.1),
            anchor.name(),
            Escaped(text)
        ));
    }

    /// Adds a text that runs upwards.
    pub fn turned(&mut self, x: impl fmt::Display, y: impl fmt::Display, size: f64, anchor: Anchor, text: &str) {
        self.push(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{}\" fill=\"{INK}\" \
             transform=\"rotate(-90 {x} {y})\">{}</text>",
            anchor.name(),
            Escaped(text)
        ));
    }

    /// Adds a straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        self.push(format_args!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {style}/>",
            Length(from.0),
            Length(from.1),
            Length(to.0),
            Length(to.1)
        ));
    }

    /// A line through points, `class` naming what it is.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)], style: &str) {
        self.push(format_args!("<polyline class=\"{class}\" points=\"{}\" fill=\"none\" {style}/>", joined(points)));
    }

    /// A filled shape with corners, `class` naming what it is.
    pub fn polygon(&mut self, class: &str, points: &[(f64, f64)], style: &str) {
        self.push(format_args!("<polygon class=\"{class}\" points=\"{}\" {style}/>", joined(points)));
    }
}

fn joined(points: &[(f64, f64)]) -> String {
    points.iter().map(|&(x, y)| format!("{},{}", Length(x), Length(y))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_harmless_and_lengths_have_fixed_digits() {
        assert_eq!(Escaped("a<b>&\"c\"\u{1}\n").to_string(), "a&lt;b&gt;&amp;&quot;c&quot;  ");
        assert_eq!((Length(-0.001).to_string(), Length(1.005).to_string()), ("0.00".to_owned(), "1.00".to_owned()));
        assert_eq!(joined(&[(1.0, 2.0), (3.25, -4.0)]), "1.00,2.00 3.25,-4.00");
    }
}
