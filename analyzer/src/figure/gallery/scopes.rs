//! Within against pooled: the same signal under all four scopes.

use epikv_stats::moments::mean;
use epikv_stats::pool::clipped_z;

use super::super::shades;
use super::{Chart, Found, counts};
use crate::study::bands::Band;
use crate::study::correlate::Figure;
use crate::study::findings::{DatasetFindings, Finding, Source};
use epikv_figures::layers::{Line, LineChart, LinePanel, LinePoint};

/// A height and its bar.
type Drawn = (Option<f64>, Option<(f64, f64)>);

/// What each line shows.
type Scope = (&'static str, fn(&Finding) -> Drawn);

const SCOPES: [Scope; 4] = [
    ("pooled", |f| drawn(&f.correlation.pooled)),
    ("within traces", |f| drawn(&f.correlation.within)),
    ("within traces, given the position", |f| (partial(f), None)),
    ("occluded windows, pooled", |f| (f.windows.as_ref().and_then(|w| w.pooled.rho), None)),
];

pub(super) fn chart(found: &Found<'_>) -> Option<Chart> {
    let (signal, n_layers) = (found.signal()?, found.about.n_layers);
    let smoother = *found.smoothers().first()?;
    let panel = |dataset: &DatasetFindings| {
        let lines = SCOPES.iter().map(|(name, of)| {
            let point = |layer| {
                let (y, whisker) = of(dataset.find(Source::Model, signal, Some(layer), smoother)?);
                Some(LinePoint { layer, y, whisker, ..LinePoint::default() })
            };
            Line::new(*name, (0..n_layers).filter_map(point).collect())
        });
        LinePanel { heading: dataset.dataset.clone(), note: counts(dataset), lines: lines.collect() }
    };
    Some(Chart::Lines(LineChart {
        name: "figure_scopes",
        title: format!("Rho of {signal}, pooled and within traces"),
        y_label: "Spearman's rho",
        n_layers,
        bands: shades(&Band::both(n_layers)),
        panels: found.shown().iter().map(panel).collect(),
        columns: found.shown().len().min(2),
        caption: vec![
            format!("Spearman's rho of {signal}, {}, with the label.", found.name(smoother)),
            "Pooled rho mixes differences between traces with ranking inside them. Bars: bootstrap over problems."
                .to_owned(),
            found.whose(),
        ],
    }))
}

fn drawn(figure: &Figure) -> Drawn {
    (figure.rho, figure.boot_lo.zip(figure.boot_hi))
}

/// The coefficients of the traces given the position, pooled in Fisher's z.
fn partial(finding: &Finding) -> Option<f64> {
    let z = finding.shapes.iter().filter_map(|shape| shape.rho_partial).map(|rho| clipped_z(rho).0);
    mean(&z.collect::<Vec<_>>()).map(f64::tanh)
}
