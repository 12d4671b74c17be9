//! The figure as SVG. Lengths are points, so that its text has the stated size in print: 7 pt or more.

use epikv_figures::{Anchor, Drawing, INK, LABEL, WIDTH, document, shortened};

use super::axis::RhoAxis;
use super::look::look;
use super::panel::{Frame, PLOT, draw_panel};
use super::plot::{Panel, Plot, SeriesKind};

pub(super) const LEFT: f64 = 42.0;
pub(super) const RIGHT: f64 = 8.0;
pub(super) const GAP: f64 = 16.0;
pub(super) const TOP: f64 = 6.0;
/// Heading and ticks of a panel, above and below its axes.
pub(super) const HEADING: f64 = 25.0;
pub(super) const TICKS: f64 = 16.0;
/// Label of the axis of layers, below the last row.
pub(super) const AXIS: f64 = 12.0;
pub(super) const LEGEND_LINE: f64 = 13.0;

/// Entries of a line of the legend.
const LEGEND_COLUMNS: usize = 2;

/// Draws the figure. Equal plots give equal bytes.
pub fn svg(plot: &Plot) -> String {
    let columns = plot.columns.max(1);
    let rows = plot.panels.len().div_ceil(columns);
    let width = (WIDTH - LEFT - RIGHT - GAP * (columns - 1) as f64) / columns as f64;
    let rho = RhoAxis::over(plot.panels.iter().flat_map(values));
    let mut drawing = Drawing::default();
    for (at, panel) in plot.panels.iter().enumerate() {
        let (row, column) = (at / columns, at % columns);
        let top = TOP + HEADING + row as f64 * (HEADING + PLOT + TICKS);
        let frame = Frame { left: LEFT + column as f64 * (width + GAP), top, width, n_layers: plot.n_layers, rho };
        draw_panel(&mut drawing, plot, panel, &frame, column == 0);
        if row + 1 == rows {
            let (x, y) = (frame.left + width / 2.0, top + PLOT + TICKS + 7.0);
            drawing.text((x, y), LABEL, Anchor::Middle, INK, "layer");
        }
    }
    let mut bottom = TOP + rows as f64 * (HEADING + PLOT + TICKS) + AXIS;
    bottom = legend(&mut drawing, plot, bottom + 4.0);
    bottom = write_caption(&mut drawing, &plot.caption, bottom);
    document(&format!("Spearman's rho of {} over layers", plot.signal), bottom + 6.0, &drawing)
}

/// The sentences below a figure; returns the lower edge.
pub(super) fn write_caption(drawing: &mut Drawing, caption: &[String], bottom: f64) -> f64 {
    epikv_figures::write_caption(drawing, caption, LEFT, WIDTH - LEFT - RIGHT, bottom)
}

/// Everything that must lie inside the axis of rho.
fn values(panel: &Panel) -> impl Iterator<Item = f64> + '_ {
    let points = panel.series.iter().flat_map(|series| &series.points);
    points.flat_map(|p| p.rho.into_iter().chain(p.interval.into_iter().flat_map(|(lo, hi)| [lo, hi])))
}

/// The lines that occur, from left to right; returns the lower edge.
fn legend(drawing: &mut Drawing, plot: &Plot, top: f64) -> f64 {
    let occurs = |kind: &SeriesKind| plot.panels.iter().any(|p| p.series.iter().any(|series| series.kind == *kind));
    let mut y = top + 8.0;
    for (at, kind) in SeriesKind::ALL.into_iter().rev().filter(occurs).enumerate() {
        let (row, column) = (at / LEGEND_COLUMNS, at % LEGEND_COLUMNS);
        let x = LEFT + column as f64 * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS as f64;
        y = top + 8.0 + row as f64 * LEGEND_LINE;
        let look = look(kind);
        let text = match (&plot.reference, kind) {
            (Some(name), SeriesKind::Reference) => format!("{} ({})", look.legend, shortened(name)),
            _ => look.legend.to_owned(),
        };
        let middle = y - 2.8;
        if kind == SeriesKind::Pooled {
            drawing.push(format_args!(
                "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"20\" height=\"7\" fill=\"{}\" fill-opacity=\"0.2\"/>",
                middle - 3.5,
                look.colour
            ));
        }
        drawing.line((x, middle), (x + 20.0, middle), look.style);
        if let Some(radius) = look.radius {
            drawing.push(format_args!(
                "<circle cx=\"{:.2}\" cy=\"{middle:.2}\" r=\"{radius}\" {}/>",
                x + 10.0,
                look.marker
            ));
        }
        drawing.text((x + 24.0, y), LABEL, Anchor::Start, INK, &text);
    }
    y + 4.0
}

#[cfg(test)]
mod tests {
    use super::super::plot::tests::plot;
    use super::*;

    #[test]
    fn equal_plots_give_equal_bytes_and_names_are_escaped() {
        let drawn = svg(&plot());
        assert_eq!(drawn, svg(&plot()));
        assert!(drawn.contains("a,&quot;b&quot; &lt;c&gt;, mean64"));
        assert!(drawn.contains(">published (table.csv)<") && !drawn.contains("random weights"));
        assert_eq!(drawn.matches("class=\"band\"").count(), 4);
        let smallest =
            drawn.split("font-size=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
        assert!(smallest.fold(f64::MAX, f64::min) >= 7.0);
    }

    #[test]
    fn undefined_values_leave_gaps() {
        let drawn = svg(&plot());
        // Layers 0-1 have a ribbon, layer 3 stands alone; 'within' lacks layer 1.
        assert_eq!(drawn.matches("<polygon class=\"pooled-interval\"").count(), 2);
        assert_eq!(drawn.matches("class=\"pooled-interval\" stroke").count(), 2);
        assert_eq!(drawn.matches("<polyline class=\"within\"").count(), 2);
        assert_eq!(drawn.matches("<circle class=\"within\"").count(), 2 * 3);
    }

    #[test]
    fn no_panels_no_panic() {
        let empty = Plot { panels: Vec::new(), n_layers: 0, ..plot() };
        assert!(svg(&empty).starts_with("<svg"));
    }
}
