//! Is one score better than another on the same labels? Paired on traces, which needs no model of how the two depend on each
//! other: differences of Fisher's z of the coefficients within traces, their mean, and Wilcoxon's signed-rank test.

use epikv_signals::Smoother;
use epikv_stats::moments::mean;
use epikv_stats::pool::clipped_z;
use epikv_stats::signed::signed_rank;

use super::name;
use crate::findings::{DatasetFindings, Finding, Source};

/// The score that the others are compared with.
const AGAINST: &str = "epikv";

pub(super) fn lines(dataset: &DatasetFindings) -> Vec<String> {
    let Some(against) = dataset.find(Source::Model, AGAINST, None, Smoother::Raw) else { return Vec::new() };
    let scores = dataset
        .findings
        .iter()
        .filter(|f| (f.source, f.layer, f.smoother) == (Source::Model, None, Smoother::Raw) && f.signal != AGAINST);
    scores.filter_map(|score| line(score, against)).collect()
}

fn line(score: &Finding, against: &Finding) -> Option<String> {
    let differences = differences(score, against);
    let (mean, test) = (mean(&differences)?, signed_rank(&differences)?);
    Some(format!(
        "{} less {AGAINST}: z differs by {mean:+.3} on average over {} traces, signed-rank p {:.3}",
        name(score.signal, score.layer),
        differences.len(),
        test.p
    ))
}

/// `z` of the one less `z` of the other at each trace where both are defined.
fn differences(a: &Finding, b: &Finding) -> Vec<f64> {
    let z = |finding: &Finding| -> Vec<Option<f64>> {
        finding.correlation.by_trace.iter().map(|t| t.as_ref().ok().map(|t| clipped_z(t.rho).0)).collect()
    };
    z(a).into_iter().zip(z(b)).filter_map(|(a, b)| Some(a? - b?)).collect()
}
