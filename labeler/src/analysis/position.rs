//! The position baseline: how much of the labels follows from where tokens stand.

use std::collections::BTreeMap;

use epikv_schemas::{LabelToken, LabelTrace};
use epikv_stats::moments::mean;
use epikv_stats::spearman;
use serde::Serialize;

/// Labels against positions, over the reasoning tokens with a label of usable traces.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Position {
    /// Traces in which both kinds of label occur.
    pub n_traces: usize,
    /// Mean over them of Spearman's rho of label and position.
    pub rho: Option<f64>,
    /// Mean over traces of the important share, by tenth of the reasoning; null where no trace has a label there.
    pub by_decile: [Option<f64>; 10],
}

impl Position {
    /// Sets labels against positions.
    pub fn of(tokens: &[LabelToken], traces: &[LabelTrace]) -> Self {
        let mut of_traces: BTreeMap<&str, Vec<(f64, Option<bool>)>> =
            traces.iter().filter(|t| t.usable).map(|t| (t.trace_id.as_str(), Vec::new())).collect();
        for token in tokens.iter().filter(|token| token.tested) {
            if let Some(labels) = of_traces.get_mut(token.trace_id.as_str()) {
                labels.push((f64::from(token.pos), token.important));
            }
        }
        let rho = |labels: &Vec<(f64, Option<bool>)>| {
            let known = labels.iter().filter_map(|(pos, label)| Some((*pos, f64::from(u8::from((*label)?)))));
            let (positions, labels): (Vec<f64>, Vec<f64>) = known.unzip();
            spearman(&positions, &labels)
        };
        let rhos: Vec<f64> = of_traces.values().filter_map(rho).collect();
        let share = |tenth: usize| {
            let shares = of_traces.values().filter_map(|labels| {
                let part = &labels[tenth * labels.len() / 10..(tenth + 1) * labels.len() / 10];
                let known: Vec<f64> =
                    part.iter().filter_map(|(_, label)| Some(f64::from(u8::from((*label)?)))).collect();
                mean(&known)
            });
            mean(&shares.collect::<Vec<f64>>())
        };
        Self { n_traces: rhos.len(), rho: mean(&rhos), by_decile: std::array::from_fn(share) }
    }
}
