//! What a figure shows, as data, and as CSV in full.

use epikv_figures::{number, quoted};

use crate::bands::Band;

/// What a line of a panel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesKind {
    /// Pooled rho with its interval.
    Pooled,
    /// Rho within traces.
    Within,
    /// Pooled rho of random weights.
    RandomWeights,
    /// Published rho.
    Reference,
}

impl SeriesKind {
    /// Every kind, the last drawn on top.
    pub(super) const ALL: [Self; 4] = [Self::RandomWeights, Self::Reference, Self::Within, Self::Pooled];

    /// Name in the CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pooled => "pooled",
            Self::Within => "within",
            Self::RandomWeights => "random_weights",
            Self::Reference => "reference",
        }
    }
}

/// A point of a line; `None` leaves a gap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Layer of the model, or of the reference model for published points.
    pub layer: usize,
    /// Place on the axis of layers.
    pub x: f64,
    /// The coefficient.
    pub rho: Option<f64>,
    /// Bounds by the trace bootstrap.
    pub interval: Option<(f64, f64)>,
}

/// A line of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is.
    pub kind: SeriesKind,
    /// Its points, by layer.
    pub points: Vec<Point>,
}

/// One problem set under one smoother.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The problem set.
    pub dataset: String,
    /// The smoother.
    pub smoothing: String,
    /// Counts in words.
    pub counts: String,
    /// Its lines.
    pub series: Vec<Series>,
}

/// Everything that the figure shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The signal.
    pub signal: &'static str,
    /// Layers of the model.
    pub n_layers: usize,
    /// The shaded bands.
    pub bands: [Band; 2],
    /// Panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels of a row.
    pub columns: usize,
    /// Name of the reference table, where there is one.
    pub reference: Option<String>,
    /// Sentences below the figure.
    pub caption: Vec<String>,
}

impl Plot {
    /// The plotted numbers, in full, as CSV.
    pub fn csv(&self) -> String {
        let mut text = String::from("dataset,signal,smoothing,series,layer,x,rho,boot_lo,boot_hi\n");
        for panel in &self.panels {
            for series in &panel.series {
                for point in &series.points {
                    let (lo, hi) = (point.interval.map(|i| i.0), point.interval.map(|i| i.1));
                    let row = [
                        quoted(&panel.dataset),
                        self.signal.to_owned(),
                        panel.smoothing.clone(),
                        series.kind.name().to_owned(),
                        point.layer.to_string(),
                        point.x.to_string(),
                        number(point.rho),
                        number(lo),
                        number(hi),
                    ];
                    text.push_str(&row.join(","));
                    text.push('\n');
                }
            }
        }
        text
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plot() -> Plot {
        let point = |layer: usize, rho: f64| Point { layer, x: layer as f64, rho: Some(rho), interval: None };
        let pooled = (0..4).map(|layer| {
            let rho = 0.1 * layer as f64 - 0.15;
            Point { interval: (layer != 2).then_some((rho - 0.1, rho + 0.05)), ..point(layer, rho) }
        });
        let series = vec![
            Series { kind: SeriesKind::Reference, points: vec![Point { layer: 31, x: 3.4375, ..point(31, 0.22) }] },
            Series {
                kind: SeriesKind::Within,
                points: (0..4).map(|l| Point { rho: (l != 1).then_some(0.0), ..point(l, 0.0) }).collect(),
            },
            Series { kind: SeriesKind::Pooled, points: pooled.collect() },
        ];
        let panel = |smoothing: &str| Panel {
            dataset: "a,\"b\" <c>".to_owned(),
            smoothing: smoothing.to_owned(),
            counts: "n_eff 4 traces, 90 tokens, base rate 0.25".to_owned(),
            series: series.clone(),
        };
        Plot {
            signal: "hs_l2",
            n_layers: 4,
            bands: Band::both(4),
            panels: vec![panel("mean64"), panel("z64")],
            columns: 2,
            reference: Some("table.csv".to_owned()),
            caption: vec!["One sentence.".to_owned(), "Another.".to_owned()],
        }
    }

    #[test]
    fn the_csv_holds_every_number_in_full() {
        let csv = plot().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 2 * (1 + 4 + 4));
        assert_eq!(lines[1], "\"a,\"\"b\"\" <c>\",hs_l2,mean64,reference,31,3.4375,0.22,,");
        assert_eq!(lines[3], "\"a,\"\"b\"\" <c>\",hs_l2,mean64,within,1,1,,,");
        assert_eq!(lines[6], "\"a,\"\"b\"\" <c>\",hs_l2,mean64,pooled,0,0,-0.15,-0.25,-0.09999999999999999");
    }
}
