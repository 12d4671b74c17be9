//! Coloured cells: rows against columns, on a scale of two colours that meet in white at a middle value.

use crate::colours::{GREY, INK};
use crate::csv::{number, push_row, quoted};
use crate::drawing::{Anchor, Drawing, Escaped, Length};
use crate::layers::panel::{GAP, RIGHT, TOP, write_caption};
use crate::page::{LABEL, LETTER, SMALL, WIDTH, document};
use crate::words::shortened;

/// Ends of the scale: orange below the middle, blue above, which people who see few colours tell apart.
const LOW: [f64; 3] = [213.0, 94.0, 0.0];
const HIGH: [f64; 3] = [0.0, 114.0, 178.0];

/// The colour of an undefined value.
const UNDEFINED: &str = "#d9d9d9";

/// Largest sides of a cell.
const MOST_WIDTH: f64 = 58.0;
const MOST_HEIGHT: f64 = 14.0;

/// Sides of a cell that has its number printed.
const PRINTED: (f64, f64) = (20.0, 9.0);

/// Columns names longer than this are turned.
const UPRIGHT: usize = 4;

/// Cells of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatPanel {
    /// Above the cells.
    pub heading: String,
    /// Names of the rows, from above.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Values, `[rows][columns]`, null where undefined.
    pub cells: Vec<Vec<Option<f64>>>,
    /// Cells with a frame: row, column, and what the caption calls it.
    pub marked: Vec<(usize, usize, &'static str)>,
}

/// A figure of coloured cells.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatChart {
    /// Stem of its files.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// What the colour means.
    pub value: &'static str,
    /// The value that is white.
    pub middle: f64,
    /// What the rows are.
    pub y_label: &'static str,
    /// What the columns are.
    pub x_label: &'static str,
    /// Panels, one below the other.
    pub panels: Vec<HeatPanel>,
    /// Sentences below the figure.
    pub caption: Vec<String>,
}

impl HeatChart {
    /// The distance from the middle at which the colours are full: the largest that occurs.
    pub fn reach(&self) -> f64 {
        let cells = self.panels.iter().flat_map(|panel| panel.cells.iter().flatten().flatten());
        cells.map(|value| (value - self.middle).abs()).fold(0.0, f64::max).max(1e-9)
    }

    pub(super) fn csv(&self) -> String {
        let mut text = String::from("panel,row,column,value,marked\n");
        for panel in &self.panels {
            for (r, (row, cells)) in panel.rows.iter().zip(&panel.cells).enumerate() {
                for (c, (column, value)) in panel.columns.iter().zip(cells).enumerate() {
                    let marks = panel.marked.iter().filter(|m| (m.0, m.1) == (r, c)).map(|m| m.2).collect::<Vec<_>>();
                    let fields = [
                        quoted(&panel.heading),
                        quoted(row),
                        quoted(column),
                        number(*value),
                        quoted(&marks.join(" and ")),
                    ];
                    push_row(&mut text, &fields);
                }
            }
        }
        text
    }

    pub(super) fn svg(&self) -> String {
        let mut drawing = Drawing::default();
        let mut top = TOP;
        for (at, panel) in self.panels.iter().enumerate() {
            top = self.draw(&mut drawing, (at, panel), top) + GAP;
        }
        let bottom = self.scale(&mut drawing, top);
        let bottom = write_caption(&mut drawing, &self.caption, bottom);
        document(&self.title, bottom + 6.0, &drawing)
    }

    /// A panel; returns its lower edge.
    fn draw(&self, drawing: &mut Drawing, (at, panel): (usize, &HeatPanel), top: f64) -> f64 {
        let longest = |names: &[String]| names.iter().map(|n| shortened(n).chars().count()).max().unwrap_or(0);
        let left = 26.0 + longest(&panel.rows) as f64 * SMALL * LETTER;
        let turned = longest(&panel.columns) > UPRIGHT;
        let names = if turned { 6.0 + longest(&panel.columns) as f64 * SMALL * LETTER } else { 11.0 };
        let width = ((WIDTH - left - RIGHT) / panel.columns.len().max(1) as f64).min(MOST_WIDTH);
        let height = MOST_HEIGHT.min(width.max(8.2));
        let first = top + 20.0 + names;
        drawing.text((left, top + 8.0), LABEL, Anchor::Start, INK, &panel.heading);
        drawing.text((left, top + 18.0), SMALL, Anchor::Start, GREY, &format!("columns: {}", self.x_label));
        for (c, name) in panel.columns.iter().enumerate() {
            let (x, y, name) = (left + (c as f64 + 0.5) * width, first - 3.0, shortened(name));
            if turned {
                drawing.turned(Length(x + 2.5), Length(y), SMALL, Anchor::Start, &name);
            } else if width > 11.0 || c % 2 == 0 {
                drawing.text((x, y), SMALL, Anchor::Middle, INK, &name);
            }
        }
        for (r, (name, cells)) in panel.rows.iter().zip(&panel.cells).enumerate() {
            let y = first + r as f64 * height;
            drawing.text((left - 4.0, y + height / 2.0 + 2.5), SMALL, Anchor::End, INK, &shortened(name));
            for (c, value) in cells.iter().enumerate() {
                let x = left + c as f64 * width;
                let fill = value.map_or_else(|| UNDEFINED.to_owned(), |value| self.colour(value));
                let said = value.map_or_else(|| "undefined".to_owned(), |value| format!("{value:.3}"));
                drawing.push(format_args!(
                    "<rect class=\"cell\" data-panel=\"{at}\" data-row=\"{r}\" data-column=\"{c}\" x=\"{}\" y=\"{}\" \
                     width=\"{}\" height=\"{}\" fill=\"{fill}\"><title>{}, {}: {said}</title></rect>",
                    Length(x),
                    Length(y),
                    Length(width - 0.4),
                    Length(height - 0.4),
                    Escaped(name),
                    Escaped(panel.columns.get(c).map_or("", String::as_str))
                ));
                if let (Some(value), true) = (value, width >= PRINTED.0 && height >= PRINTED.1) {
                    let ink = if (value - self.middle).abs() > 0.6 * self.reach() { "#ffffff" } else { INK };
                    drawing.text(
                        (x + width / 2.0, y + height / 2.0 + 2.5),
                        SMALL,
                        Anchor::Middle,
                        ink,
                        &signed(*value),
                    );
                }
            }
        }
        for (r, c, _) in &panel.marked {
            drawing.push(format_args!(
                "<rect class=\"mark\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"{INK}\" \
                 stroke-width=\"1.2\"/>",
                Length(left + *c as f64 * width - 0.2),
                Length(first + *r as f64 * height - 0.2),
                Length(width),
                Length(height)
            ));
        }
        let middle = first + height * panel.rows.len() as f64 / 2.0;
        drawing.turned(12, Length(middle), LABEL, Anchor::Middle, self.y_label);
        first + height * panel.rows.len() as f64
    }

    /// The colours with their values; returns the lower edge.
    fn scale(&self, drawing: &mut Drawing, top: f64) -> f64 {
        const STEPS: usize = 9;
        let (left, width) = (42.0, 34.0);
        drawing.text((left, top + 7.0), LABEL, Anchor::Start, INK, self.value);
        for step in 0..STEPS {
            let part = step as f64 / (STEPS - 1) as f64 * 2.0 - 1.0;
            let value = self.middle + part * self.reach();
            let x = left + step as f64 * width;
            drawing.push(format_args!(
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"8\" fill=\"{}\"/>",
                Length(x),
                Length(top + 11.0),
                Length(width),
                self.colour(value)
            ));
            if step % 2 == 0 {
                drawing.text((x + width / 2.0, top + 27.0), SMALL, Anchor::Middle, INK, &signed(value));
            }
        }
        top + 32.0
    }

    /// `#rrggbb` of a value.
    pub fn colour(&self, value: f64) -> String {
        let part = ((value - self.middle) / self.reach()).clamp(-1.0, 1.0);
        let end = if part < 0.0 { LOW } else { HIGH };
        let [r, g, b] = end.map(|channel| (255.0 + (channel - 255.0) * part.abs()).round() as u8);
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

/// Two digits, and a minus sign that is none of a hyphen.
fn signed(value: f64) -> String {
    let sign = if value < -0.005 { "\u{2212}" } else { "" };
    format!("{sign}{:.2}", value.abs())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn chart() -> HeatChart {
        let names = |all: &[&str]| all.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let panel = HeatPanel {
            heading: "gsm8k".to_owned(),
            rows: names(&["hs_l2", "a <b>"]),
            columns: names(&["x", "a long name", "z"]),
            cells: vec![vec![Some(0.5), None, Some(-0.25)], vec![Some(0.0), Some(0.125), Some(-0.5)]],
            marked: vec![(1, 2, "picked")],
        };
        HeatChart {
            name: "figure_heat",
            title: "Cells".to_owned(),
            value: "rho",
            middle: 0.0,
            y_label: "signal",
            x_label: "problem set",
            panels: vec![panel],
            caption: vec!["A sentence.".to_owned()],
        }
    }

    /// Red and blue of the drawn colour, which go different ways on both sides of the middle.
    fn read(svg: &str, row: usize, column: usize) -> Option<f64> {
        let cell = svg.split(&format!("data-row=\"{row}\" data-column=\"{column}\"")).nth(1)?;
        let fill = cell.split("fill=\"#").nth(1)?.get(..6)?;
        if fill == &UNDEFINED[1..] {
            return None;
        }
        let channel = |at: usize| f64::from(u8::from_str_radix(&fill[at..at + 2], 16).expect("hexadecimal"));
        let (red, blue) = (channel(0), channel(4));
        Some(if red < blue { (255.0 - red) / 255.0 } else { -(255.0 - blue) / 255.0 } * 0.5)
    }

    #[test]
    fn colours_are_the_values() {
        let chart = chart();
        let svg = chart.svg();
        for (r, row) in chart.panels[0].cells.iter().enumerate() {
            for (c, want) in row.iter().enumerate() {
                match (read(&svg, r, c), want) {
                    (Some(got), Some(want)) => assert!((got - want).abs() <= 0.5 / 255.0, "{r} {c}: {got} {want}"),
                    (got, want) => assert_eq!(got, *want),
                }
            }
        }
        assert_eq!(svg.matches("class=\"mark\"").count(), 1);
        assert!(svg.contains("a &lt;b&gt;") && svg.contains(">\u{2212}0.50<"));
        assert_eq!(chart.csv().lines().last(), Some("gsm8k,a <b>,z,-0.5,picked"));
        let empty = HeatChart { panels: Vec::new(), ..chart };
        assert!(empty.svg().starts_with("<svg"));
    }
}
