//! All pairs of layers: the AUC at decision time of `z_a - z_b`, single layers beside them, with the published pair and the
//! chosen candidate in frames.

use epikv_signals::{EPIKV_LAYERS, REFERENCE_LAYERS, map_layer};

use super::{Chart, Found};
use crate::beside::at_budget::Decided;
use crate::beside::selection::Candidate;
use epikv_figures::{HeatChart, HeatPanel};

/// Name of the row and column of single layers.
const ALONE: &str = "none";

pub(super) fn chart(found: &Found<'_>) -> Option<Chart> {
    let n_layers = found.about.n_layers;
    let panels: Vec<HeatPanel> = found.decided.datasets.iter().filter_map(|decided| panel(decided, n_layers)).collect();
    let published = EPIKV_LAYERS.map(|layer| map_layer(layer, n_layers));
    let mapped = if n_layers == REFERENCE_LAYERS { "" } else { ", mapped to this depth" };
    let places = found.decided.datasets.iter().filter_map(|decided| Some(format!("{}.", decided.placebo(n_layers)?)));
    (!panels.is_empty()).then(|| {
        let mut caption = vec![
            format!(
                "Mean over traces of the AUC at the moments of eviction (budget {}) of z_a - z_b, rolling z-scores of hs_l2; \
                 row and column \"{ALONE}\" are single layers.",
                found.decided.budget
            ),
            format!("Frames: layers {} and {}{mapped}, and the best candidate.", published[0], published[1]),
        ];
        caption.extend(places);
        caption.push(format!("Model {}, {n_layers} layers.", found.about.model));
        Chart::Heat(HeatChart {
            name: "figure_pairs",
            title: "All pairs of layers".to_owned(),
            value: "AUC at decision time",
            middle: 0.5,
            y_label: "layer a, added",
            x_label: "layer b, subtracted",
            panels,
            caption,
        })
    })
}

fn panel(decided: &Decided, n_layers: usize) -> Option<HeatPanel> {
    let (all, picked) = decided.layers.as_ref()?;
    // The first row and column stand for no layer.
    let place = |candidate: Candidate| match candidate {
        Candidate::Plus(a) => Some((a + 1, 0)),
        Candidate::Minus(b) => Some((0, b + 1)),
        Candidate::Pair(a, b) => Some((a + 1, b + 1)),
        Candidate::Score(_) | Candidate::Random(_) | Candidate::Baseline(_) => None,
    };
    let mut cells = vec![vec![None; n_layers + 1]; n_layers + 1];
    for selected in all {
        if let Some((row, column)) = place(selected.candidate).filter(|(r, c)| *r <= n_layers && *c <= n_layers) {
            cells[row][column] = selected.auc;
        }
    }
    let names: Vec<String> = std::iter::once(ALONE.to_owned()).chain((0..n_layers).map(|l| l.to_string())).collect();
    let [a, b] = EPIKV_LAYERS.map(|layer| map_layer(layer, n_layers) + 1);
    let mut marked = vec![(a, b, "published")];
    marked.extend(place(picked.best).map(|(row, column)| (row, column, "picked")));
    Some(HeatPanel { heading: decided.dataset.clone(), rows: names.clone(), columns: names, cells, marked })
}
