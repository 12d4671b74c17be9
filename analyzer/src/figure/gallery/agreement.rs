//! Do two scores rank the same tokens high? Mean Spearman's rho between scores over traces.

use std::collections::BTreeMap;

use epikv_stats::moments::mean;

use super::{Chart, Found};
use epikv_figures::{HeatChart, HeatPanel};

pub(super) fn chart(found: &Found<'_>) -> Option<Chart> {
    let agreements = &found.decided.agreements;
    let mut names: Vec<&str> = Vec::new();
    let mut by_pair: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for agreement in agreements {
        let [a, b] = agreement.scores;
        for name in [a, b] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        by_pair.entry((a, b)).or_default().extend(agreement.found.spearman);
    }
    let of = |a: &str, b: &str| by_pair.get(&(a, b)).or_else(|| by_pair.get(&(b, a))).and_then(|all| mean(all));
    let cells = names.iter().map(|a| names.iter().map(|b| if a == b { None } else { of(a, b) }).collect()).collect();
    let owned = || names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    (!names.is_empty()).then(|| {
        let panel = HeatPanel {
            heading: format!("budget {}", found.decided.budget),
            rows: owned(),
            columns: owned(),
            cells,
            marked: Vec::new(),
        };
        Chart::Heat(HeatChart {
            name: "figure_agreement",
            title: "Agreement of scores".to_owned(),
            value: "rho between scores",
            middle: 0.0,
            y_label: "score",
            x_label: "score",
            panels: vec![panel],
            caption: vec![
                "Spearman's rho between two scores over the tokens that a budget can evict, mean over traces."
                    .to_owned(),
                "Overlap of the kept tokens with its chance level is in agreement.parquet.".to_owned(),
                format!("Model {}, {} layers.", found.about.model, found.about.n_layers),
            ],
        })
    })
}
