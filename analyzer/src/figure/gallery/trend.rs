//! Signals against the position: rho with the token index within traces, over layers, one line a signal.

use epikv_signals::Smoother;
use epikv_stats::moments::mean;

use super::{Chart, Found, counts};
use crate::study::findings::{DatasetFindings, Source};
use epikv_figures::layers::{Line, LineChart, LinePanel, LinePoint};

/// Lines that can be told apart.
const MOST_LINES: usize = 8;

pub(super) fn chart(found: &Found<'_>) -> Option<Chart> {
    found.signal()?;
    if !found.about.settings.smoothers.contains(&Smoother::Raw) {
        return None;
    }
    let n_layers = found.about.n_layers;
    let panel = |dataset: &DatasetFindings| {
        let mut signals: Vec<&'static str> = dataset
            .findings
            .iter()
            .filter(|f| f.source == Source::Model && f.layer.is_some() && f.smoother == Smoother::Raw)
            .map(|f| f.signal)
            .collect();
        signals.dedup();
        let line = |signal: &&'static str| {
            let point = |layer| {
                let finding = dataset.find(Source::Model, signal, Some(layer), Smoother::Raw)?;
                let all: Vec<f64> = finding.shapes.iter().filter_map(|shape| shape.rho_position).collect();
                Some(LinePoint { layer, y: mean(&all), ..LinePoint::default() })
            };
            Line::new(*signal, (0..n_layers).filter_map(point).collect())
        };
        let lines = signals.iter().take(MOST_LINES).map(line).collect();
        LinePanel { heading: dataset.dataset.clone(), note: counts(dataset), lines }
    };
    Some(Chart::Lines(LineChart {
        name: "figure_trend",
        title: "Rho of raw signals with the position".to_owned(),
        y_label: "rho with the position",
        n_layers,
        bands: Vec::new(),
        panels: found.shown().iter().map(panel).collect(),
        columns: found.shown().len().min(2),
        caption: vec![
            "Spearman's rho of raw signals with the token index, mean over traces.".to_owned(),
            format!(
                "The first {MOST_LINES} signals that have layers. A signal that runs with the position is a position."
            ),
            found.whose(),
        ],
    }))
}
