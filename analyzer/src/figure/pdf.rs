//! The same drawing as a PDF of one page: paths with flat colours, letters as outlines, nothing that depends on a machine.
//!
//! The SVG is read by the renderer that makes the PNG too, so both show the same lines. A page has the size of the figure in
//! points, and PDF counts upwards, so that the whole page is turned over once.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use resvg::tiny_skia::{PathSegment, Transform};
use resvg::usvg::{Color, FillRule, Group, Node, Paint, Path, Tree};

/// Turns a drawing of ours into a PDF. Equal drawings give equal bytes.
pub(super) fn pdf(tree: &Tree) -> Vec<u8> {
    let mut page = Page::default();
    page.group(tree.root());
    page.finish(tree)
}

/// A page under way.
#[derive(Debug, Default)]
struct Page {
    content: String,
    /// Opacities in thousandths, each with a state of its own.
    opacities: BTreeSet<u32>,
}

impl Page {
    fn group(&mut self, group: &Group) {
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group),
                Node::Path(path) => self.path(path),
                Node::Text(text) => self.group(text.flattened()),
                Node::Image(_) => {} // we draw none
            }
        }
    }

    fn path(&mut self, path: &Path) {
        if !path.is_visible() {
            return;
        }
        if let Some(fill) = path.fill()
            && let Some([r, g, b]) = colour(fill.paint())
        {
            self.opacity(fill.opacity().get());
            self.push(format_args!("{r} {g} {b} rg"));
            self.outline(path);
            self.push(format_args!("{}", if fill.rule() == FillRule::EvenOdd { "f*" } else { "f" }));
        }
        if let Some(stroke) = path.stroke()
            && let Some([r, g, b]) = colour(stroke.paint())
        {
            self.opacity(stroke.opacity().get());
            let dashes = stroke.dasharray().unwrap_or_default();
            let dashes = dashes.iter().map(|d| length(*d)).collect::<Vec<_>>().join(" ");
            let width = length(stroke.width().get() * path.abs_transform().get_scale().0);
            self.push(format_args!("{r} {g} {b} RG {width} w [{dashes}] {} d", length(stroke.dashoffset())));
            self.outline(path);
            self.push(format_args!("S"));
        }
    }

    fn outline(&mut self, path: &Path) {
        let at: Transform = path.abs_transform();
        let Some(moved) = path.data().clone().transform(at) else { return };
        let mut last = (0.0, 0.0);
        for segment in moved.segments() {
            match segment {
                PathSegment::MoveTo(p) => {
                    self.push(format_args!("{} {} m", length(p.x), length(p.y)));
                    last = (p.x, p.y);
                }
                PathSegment::LineTo(p) => {
                    self.push(format_args!("{} {} l", length(p.x), length(p.y)));
                    last = (p.x, p.y);
                }
                PathSegment::QuadTo(c, p) => {
                    // A parabola is the cubic whose controls lie two thirds of the way.
                    let toward = |from: f32, control: f32| from + (control - from) * 2.0 / 3.0;
                    let first = (toward(last.0, c.x), toward(last.1, c.y));
                    self.cubic(first, (toward(p.x, c.x), toward(p.y, c.y)), (p.x, p.y));
                    last = (p.x, p.y);
                }
                PathSegment::CubicTo(a, b, p) => {
                    self.cubic((a.x, a.y), (b.x, b.y), (p.x, p.y));
                    last = (p.x, p.y);
                }
                PathSegment::Close => self.push(format_args!("h")),
            }
        }
    }

    fn cubic(&mut self, a: (f32, f32), b: (f32, f32), p: (f32, f32)) {
        let all = [a.0, a.1, b.0, b.1, p.0, p.1].map(length);
        self.push(format_args!("{} c", all.join(" ")));
    }

    fn opacity(&mut self, opacity: f32) {
        let thousandths = (opacity * 1000.0).round() as u32;
        self.opacities.insert(thousandths);
        self.push(format_args!("/G{thousandths} gs"));
    }

    fn push(&mut self, operator: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.content, "{operator}");
    }

    /// The file: catalogue, page, content, and a table of where each of them starts.
    fn finish(self, tree: &Tree) -> Vec<u8> {
        let (width, height) = (length(tree.size().width()), length(tree.size().height()));
        let mut states = String::new();
        for opacity in &self.opacities {
            let value = f64::from(*opacity) / 1000.0;
            let _ = write!(states, "/G{opacity} << /ca {value:.3} /CA {value:.3} >> ");
        }
        let content = format!("1 0 0 -1 0 {height} cm\n{}", self.content);
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
            format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R \
                 /Resources << /ExtGState << {states}>> >> >>"
            ),
            format!("<< /Length {} >>\nstream\n{content}endstream", content.len()),
        ];
        let mut file = String::from("%PDF-1.4\n");
        let mut starts = Vec::new();
        for (at, object) in objects.iter().enumerate() {
            starts.push(file.len());
            let _ = write!(file, "{} 0 obj\n{object}\nendobj\n", at + 1);
        }
        let table = file.len();
        let _ = write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
        for start in starts {
            let _ = writeln!(file, "{start:010} 00000 n ");
        }
        let _ = write!(file, "trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1);
        file.into_bytes()
    }
}

/// Red, green and blue of a flat colour in `[0, 1]`; we draw no gradients.
fn colour(paint: &Paint) -> Option<[String; 3]> {
    let Paint::Color(Color { red, green, blue }) = paint else { return None };
    Some([red, green, blue].map(|channel| format!("{:.3}", f64::from(*channel) / 255.0)))
}

/// A length with three digits, and no minus before zero.
fn length(value: f32) -> String {
    let rounded = (f64::from(value) * 1000.0).round() / 1000.0;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::chart;
    use super::super::png::tree;
    use super::*;
    use crate::figure::Chart;

    #[test]
    fn a_page_holds_the_paths_and_its_table_points_at_them() {
        let svg = Chart::Lines(chart()).svg();
        let read = || tree(&svg).expect("an SVG");
        let (file, again) = (pdf(&read()), pdf(&read()));
        assert_eq!(file, again);
        let text = String::from_utf8(file).expect("text");
        assert!(text.starts_with("%PDF-1.4\n") && text.ends_with("%%EOF\n"));
        assert!(text.contains("/MediaBox [0 0 486 ") && text.contains("/G160 << /ca 0.160"));
        assert!(text.matches(" l\n").count() > 20 && text.matches(" c\n").count() > 100, "lines and letters");
        let table = text.rfind("xref\n0 5\n").expect("a table");
        for (at, line) in text[table..].lines().skip(3).take(4).enumerate() {
            let start: usize = line[..10].parse().expect("a place");
            assert!(text[start..].starts_with(&format!("{} 0 obj", at + 1)));
        }
    }
}
