//! Effect of smoothing on rho over layers: one line a smoother, one panel a problem set.

use super::super::shades;
use super::{Chart, Found, counts};
use crate::study::bands::Band;
use crate::study::findings::{DatasetFindings, Source};
use epikv_figures::layers::{Line, LineChart, LinePanel, LinePoint};

pub(super) fn chart(found: &Found<'_>) -> Option<Chart> {
    let (signal, n_layers) = (found.signal()?, found.about.n_layers);
    let smoothers = found.smoothers();
    let panel = |dataset: &DatasetFindings| {
        let lines = smoothers.iter().map(|&smoother| {
            let point = |layer| {
                let finding = dataset.find(Source::Model, signal, Some(layer), smoother)?;
                Some(LinePoint { layer, y: finding.correlation.within.rho, ..LinePoint::default() })
            };
            Line::new(found.name(smoother), (0..n_layers).filter_map(point).collect())
        });
        LinePanel { heading: dataset.dataset.clone(), note: counts(dataset), lines: lines.collect() }
    };
    Some(Chart::Lines(LineChart {
        name: "figure_smoothing",
        title: format!("Rho within traces of {signal} under each smoother"),
        y_label: "rho within traces",
        n_layers,
        bands: shades(&Band::both(n_layers)),
        panels: found.shown().iter().map(panel).collect(),
        columns: found.shown().len().min(2),
        caption: vec![
            format!("Spearman's rho of {signal} with the occlusion label of a token within traces, by smoother."),
            "A smoothed series varies more around 0 without any relation: columns z_null and null_sd of correlations.parquet \
             say how far."
                .to_owned(),
            found.whose(),
        ],
    }))
}
