//! Signals that depend on the position: rho within traces of the raw signal with the position, mean over traces, and
//! rho with the label given the position.

use epikv_signals::Smoother;
use epikv_stats::moments::mean;

use super::name;
use crate::study::findings::{DatasetFindings, Finding, Source, TraceShape};

/// Signals that are shown: those that run furthest with the position.
const SHOWN: usize = 8;

pub(super) fn lines(dataset: &DatasetFindings) -> Vec<String> {
    let raw = dataset.findings.iter().filter(|f| f.source == Source::Model && f.smoother == Smoother::Raw);
    let mut trends: Vec<(f64, &Finding)> =
        raw.filter_map(|f| Some((mean_of(f, |shape| shape.rho_position)?, f))).collect();
    trends.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let line = |(trend, finding): &(f64, &Finding)| {
        let within = finding.correlation.within.rho?;
        let partial = mean_of(finding, |shape| shape.rho_partial)?;
        let stratified = mean_of(finding, |shape| shape.rho_stratified)?;
        Some(format!(
            "{} correlates with the position at {trend:+.2}; rho with the label {within:+.3}, given the position {partial:+.3}, \
             within tenths of a trace {stratified:+.3}",
            name(finding.signal, finding.layer)
        ))
    };
    trends.iter().filter_map(line).take(SHOWN).collect()
}

fn mean_of(finding: &Finding, of: fn(&TraceShape) -> Option<f64>) -> Option<f64> {
    mean(&finding.shapes.iter().filter_map(of).collect::<Vec<_>>())
}
