//! Lag profiles: for each signal, the smoothed column with the largest |rho| within traces.

use epikv_signals::Smoother;

use super::name;
use crate::study::findings::{DatasetFindings, Finding, Source};
use crate::study::lags::peak;
use crate::study::settings::Settings;

pub(super) fn lines(dataset: &DatasetFindings, settings: &Settings) -> Vec<String> {
    let smoothed = |f: &&Finding| f.source == Source::Model && f.smoother != Smoother::Raw && !f.lags.is_empty();
    let size = |f: &Finding| f.correlation.within.rho.map_or(-1.0, f64::abs);
    let mut signals: Vec<&str> = dataset.findings.iter().filter(smoothed).map(|f| f.signal).collect();
    signals.dedup();
    let best = signals.into_iter().filter_map(|signal| {
        let own = dataset.findings.iter().filter(smoothed).filter(|f| f.signal == signal);
        own.reduce(|best, next| if size(next) > size(best) { next } else { best })
    });
    best.filter_map(|finding| line(finding, settings)).collect()
}

fn line(finding: &Finding, settings: &Settings) -> Option<String> {
    let (lag, _) = peak(&finding.lags)?;
    let signed = |rho: Option<f64>| rho.map_or_else(|| "-".to_owned(), |rho| format!("{rho:+.3}"));
    let profile: Vec<String> = finding.lags.iter().map(|at| format!("{:+}: {}", at.lag, signed(at.rho))).collect();
    let z = finding.correlation.within.tested.z_null.map_or_else(String::new, |z| format!(", z at 0 {z:+.1}"));
    Some(format!(
        "{} {}: rho within traces is largest {lag:+} tokens from the label{z}; {}",
        name(finding.signal, finding.layer),
        finding.smoother.name(settings.window),
        profile.join(", ")
    ))
}
