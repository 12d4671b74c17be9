//! Signals and problem sets: rho within traces of every signal of the whole model, of both bands, and of the baselines.

use epikv_signals::Smoother;

use super::{Chart, Found};
use crate::study::bands::{BAND_SIGNAL, Band, BandMean};
use crate::study::findings::{DatasetFindings, Finding, Source};
use epikv_figures::{HeatChart, HeatPanel};

pub(super) fn chart(found: &Found<'_>) -> Option<Chart> {
    let smoother = *found.smoothers().first()?;
    let first = found.datasets.first()?;
    let bands = Band::both(found.about.n_layers);
    let has_bands = first.findings.iter().any(|f| f.source == Source::Model && f.signal == BAND_SIGNAL);
    let is_row = |f: &&Finding| f.layer.is_none() && (f.source == Source::None || f.smoother == smoother);
    let rows: Vec<(Source, &'static str)> =
        first.findings.iter().filter(is_row).map(|f| (f.source, f.signal)).collect();
    let mut names: Vec<String> = Vec::new();
    let mut cells: Vec<Vec<Option<f64>>> = Vec::new();
    if has_bands {
        for band in &bands {
            let confidence = found.about.settings.confidence;
            let of =
                |d: &DatasetFindings| BandMean::of(d, Source::Model, BAND_SIGNAL, smoother, band, confidence).within;
            names.push(format!("{BAND_SIGNAL}, band {}", band.name));
            cells.push(found.datasets.iter().map(of).collect());
        }
    }
    for (source, signal) in rows {
        let own = if source == Source::None { Smoother::Raw } else { smoother };
        let of = |d: &DatasetFindings| d.find(source, signal, None, own)?.correlation.within.rho;
        names.push(match source {
            Source::Model => signal.to_owned(),
            Source::RandomWeights => format!("random weights: {signal}"),
            Source::None => format!("baseline: {signal}"),
        });
        cells.push(found.datasets.iter().map(of).collect());
    }
    (!names.is_empty()).then(|| {
        let panel = HeatPanel {
            heading: format!("rho within traces, {}", found.name(smoother)),
            rows: names,
            columns: found.datasets.iter().map(|d| d.dataset.clone()).collect(),
            cells,
            marked: Vec::new(),
        };
        Chart::Heat(HeatChart {
            name: "figure_datasets",
            title: "Signals against problem sets".to_owned(),
            value: "rho within traces",
            middle: 0.0,
            y_label: "signal",
            x_label: "problem sets",
            panels: vec![panel],
            caption: vec![
                "Spearman's rho with the occlusion label of a token within traces (mean of Fisher's z): means over layers, \
                 scores, both bands, and the same through random weights."
                    .to_owned(),
                "Baselines are not smoothed. Grey is undefined.".to_owned(),
                format!("Model {}, {} layers.", found.about.model, found.about.n_layers),
            ],
        })
    })
}
