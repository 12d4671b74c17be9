//! The two-band figure: rho over layers, one line a problem set, Fisher's interval as a ribbon, the bootstrap as bars.

use super::super::shades;
use super::{Chart, Found, counts};
use crate::study::bands::Band;
use crate::study::findings::{DatasetFindings, Source};
use epikv_figures::layers::{Line, LineChart, LinePanel, LinePoint};

/// Smoothers side by side.
const SIDE_BY_SIDE: usize = 2;

/// Lines that can be told apart, one of them the published one.
const MOST_LINES: usize = 7;

pub(super) fn chart(found: &Found<'_>) -> Option<Chart> {
    let (signal, n_layers) = (found.signal()?, found.about.n_layers);
    let reference = found.about.reference.filter(|_| signal == "hs_l2");
    let panel = |smoother| {
        let line = |dataset: &DatasetFindings| {
            let point = |layer| {
                let pooled = &dataset.find(Source::Model, signal, Some(layer), smoother)?.correlation.pooled;
                let ribbon = pooled.ci_lo.zip(pooled.ci_hi);
                let whisker = pooled.boot_lo.zip(pooled.boot_hi);
                Some(LinePoint { layer, y: pooled.rho, ribbon, whisker, ..LinePoint::default() })
            };
            Line::new(&dataset.dataset, (0..n_layers).filter_map(point).collect())
        };
        let mut lines: Vec<Line> = found.datasets.iter().take(MOST_LINES).map(line).collect();
        // Published layers of another depth have places of their own, which the detailed figure draws.
        if let Some(published) = reference.filter(|_| n_layers == epikv_signals::REFERENCE_LAYERS) {
            let points = published.layers(smoother).into_iter();
            let points: Vec<LinePoint> =
                points.map(|(layer, rho)| LinePoint { layer, y: Some(rho), ..LinePoint::default() }).collect();
            if !points.is_empty() {
                lines.push(Line::new(format!("published ({})", published.name), points));
            }
        }
        let note = found.datasets.first().filter(|_| found.datasets.len() == 1).map(counts).unwrap_or_default();
        LinePanel { heading: format!("{signal}, {}", found.name(smoother)), note, lines }
    };
    let smoothers: Vec<_> = found.smoothers().into_iter().take(SIDE_BY_SIDE).collect();
    let bands = Band::both(n_layers);
    let settings = found.about.settings;
    let sets: Vec<String> =
        found.datasets.iter().take(MOST_LINES).map(|d| format!("{}: {}", d.dataset, counts(d))).collect();
    Some(Chart::Lines(LineChart {
        name: "figure_bands",
        title: format!("Pooled rho of {signal} over layers"),
        y_label: "Spearman's rho",
        n_layers,
        panels: smoothers.iter().map(|&smoother| panel(smoother)).collect(),
        columns: smoothers.len(),
        caption: vec![
            format!("Pooled Spearman's rho of {signal} with the occlusion label of a token, one line a problem set."),
            format!(
                "Ribbon: {:.0} % {} interval on n_eff problems, a convention; bars: bootstrap over problems (BCa, {} replicates).",
                100.0 * settings.confidence.level(),
                settings.fisher.name(),
                settings.replicates
            ),
            format!("Shaded: {}; {}.", bands[0].describe(), bands[1].describe()),
            format!("{}.", sets.join("; ")),
            format!("Model {}, {n_layers} layers.", found.about.model),
        ],
        bands: shades(&bands),
    }))
}
