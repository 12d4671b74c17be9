//! The section *Looks wrong*: findings that come from the data rather than from the signal.

use std::collections::BTreeMap;

use epikv_signals::Smoother;
use epikv_stats::moments::mean;

use super::{list, name};
use crate::study::findings::{DatasetFindings, Finding, Source};
use crate::study::settings::Settings;

/// Traces below which no interval means anything.
const MIN_TRACES: usize = 4;

/// Mean |rho| with the position above which a signal is a position.
const MONOTONE: f64 = 0.9;

/// Signals whose size is that of the residual stream.
const RESIDUAL: [&str; 2] = ["hs_l2", "hs_norm"];

/// Ratio of neighbouring layers from which on a last layer may be on another scale.
const SCALE: f64 = 2.0;

/// Level below which a coefficient is worth asking whether one trace makes it.
const LEVEL: f64 = 0.05;

pub(super) fn lines(found: &[DatasetFindings], settings: &Settings) -> Vec<String> {
    let mut lines = Vec::new();
    for dataset in found {
        let mut say = |what: &str, names: &[String]| {
            if !names.is_empty() {
                lines.push(format!("{}: {what}: {}", dataset.dataset, list(names)));
            }
        };
        let n_eff = dataset.find(Source::None, "position", None, Smoother::Raw).map_or(0, |f| f.correlation.n_eff);
        if n_eff < MIN_TRACES {
            say(&format!("fewer than {MIN_TRACES} traces have both labels"), &[format!("{n_eff} usable")]);
        }
        let raw: Vec<&Finding> =
            dataset.findings.iter().filter(|f| f.source == Source::Model && f.smoother == Smoother::Raw).collect();
        say("follows the position in nearly every trace", &names_of(&raw, is_monotone));
        say("constant in every trace", &names_of(&raw, is_constant));
        say("the same numbers twice", &duplicates(&raw));
        say("the last layer is on another scale, as after a final norm", &last_layer_scale(&raw));
        let smoothed: Vec<&Finding> = dataset.findings.iter().filter(|f| f.source == Source::Model).collect();
        let dominated = smoothed
            .iter()
            .filter(|f| is_dominated(f))
            .map(|f| format!("{} {}", name(f.signal, f.layer), f.smoother.name(settings.window)));
        say("leaving out one trace removes more than half of pooled rho", &dominated.collect::<Vec<_>>());
    }
    lines.extend(flips(found, settings));
    lines
}

fn names_of(findings: &[&Finding], is: fn(&Finding) -> bool) -> Vec<String> {
    findings.iter().filter(|f| is(f)).map(|f| name(f.signal, f.layer)).collect()
}

fn is_monotone(finding: &Finding) -> bool {
    let sizes: Vec<f64> = finding.shapes.iter().filter_map(|s| s.rho_position).map(f64::abs).collect();
    mean(&sizes).is_some_and(|size| size > MONOTONE)
}

fn is_constant(finding: &Finding) -> bool {
    let all = &finding.correlation;
    all.n_constant_signal > 0 && all.n_eff == 0
}

fn is_dominated(finding: &Finding) -> bool {
    let pooled = &finding.correlation.pooled;
    let matters = pooled.tested.p_cross.is_some_and(|p| p <= LEVEL);
    matters && pooled.rho.zip(pooled.leverage).is_some_and(|(rho, leverage)| leverage > rho.abs() / 2.0)
}

/// Columns whose coefficients and whose course along every trace are equal to the last bit.
fn duplicates(raw: &[&Finding]) -> Vec<String> {
    let mut by_numbers: BTreeMap<Vec<Option<u64>>, Vec<String>> = BTreeMap::new();
    for finding in raw.iter().filter(|f| f.correlation.n_eff > 0) {
        let bits = |value: Option<f64>| value.map(f64::to_bits);
        let rhos = finding.correlation.by_trace.iter().map(|t| bits(t.as_ref().ok().map(|t| t.rho)));
        let course = finding.shapes.iter().flat_map(|s| [bits(s.rho_position), bits(s.lag1)]);
        by_numbers.entry(rhos.chain(course).collect()).or_default().push(name(finding.signal, finding.layer));
    }
    by_numbers.into_values().filter(|names| names.len() > 1).map(|names| names.join(" = ")).collect()
}

/// Signals of the residual stream whose mean at the last layer is further from that of the layer before than any other layer's
/// is: states that were read after the final norm look like that, and smoothers and bands must not mix them with the others.
fn last_layer_scale(raw: &[&Finding]) -> Vec<String> {
    let mut levels: BTreeMap<&str, BTreeMap<usize, f64>> = BTreeMap::new();
    for finding in raw.iter().filter(|f| RESIDUAL.contains(&f.signal)) {
        let means: Vec<f64> = finding.shapes.iter().filter_map(|s| s.mean).collect();
        if let (Some(layer), Some(level)) = (finding.layer, mean(&means)) {
            levels.entry(finding.signal).or_default().insert(layer, level);
        }
    }
    let of = |(signal, levels): (&str, BTreeMap<usize, f64>)| {
        let levels: Vec<f64> = levels.into_values().filter(|level| *level > 0.0).collect();
        let steps: Vec<f64> = levels.windows(2).map(|pair| pair[1] / pair[0]).collect();
        let (last, others) = steps.split_last()?;
        let size = |ratio: f64| ratio.ln().abs();
        let largest = others.iter().copied().map(size).reduce(f64::max)?;
        let is_other = size(*last) > SCALE.ln() && size(*last) > 2.0 * largest;
        is_other
            .then(|| format!("{signal} layer {} has {last:.2} times the mean of the layer before", levels.len() - 1))
    };
    levels.into_iter().filter_map(of).collect()
}

/// A signal, its layer and its smoother.
type Column<'a> = (&'a str, Option<usize>, Smoother);

/// Columns whose bootstrap interval lies on one side of 0 in one problem set and on the other in another.
fn flips(found: &[DatasetFindings], settings: &Settings) -> Option<String> {
    let mut sides: BTreeMap<Column<'_>, [Option<&str>; 2]> = BTreeMap::new();
    for dataset in found.iter().filter(|dataset| !dataset.is_pooled) {
        for finding in dataset.findings.iter().filter(|f| f.source == Source::Model) {
            let pooled = &finding.correlation.pooled;
            let Some((lo, hi)) = pooled.boot_lo.zip(pooled.boot_hi) else { continue };
            if lo <= 0.0 && 0.0 <= hi {
                continue;
            }
            let column = sides.entry((finding.signal, finding.layer, finding.smoother)).or_default();
            column[usize::from(lo > 0.0)].get_or_insert(&dataset.dataset);
        }
    }
    let both = sides.into_iter().filter_map(|((signal, layer, smoother), [negative, positive])| {
        let (negative, positive) = (negative?, positive?);
        let smoothing = smoother.name(settings.window);
        Some(format!("{} {smoothing} (- on {negative}, + on {positive})", name(signal, layer)))
    });
    let both: Vec<String> = both.collect();
    (!both.is_empty()).then(|| format!("the sign of rho differs between problem sets: {}", list(&both)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::correlate::Correlation;
    use crate::study::findings::TraceShape;

    fn of_layers(levels: &[f64]) -> Vec<Finding> {
        let shape = |mean: f64| TraceShape {
            n: 8,
            n_important: 3,
            mean: Some(mean),
            rho_position: None,
            lag1: None,
            rho_partial: None,
            rho_stratified: None,
        };
        let finding = |(layer, level): (usize, &f64)| Finding {
            source: Source::Model,
            signal: "hs_norm",
            layer: Some(layer),
            smoother: Smoother::Raw,
            correlation: Correlation::default(),
            windows: None,
            shapes: vec![shape(*level), shape(1.2 * level)],
            lags: Vec::new(),
        };
        levels.iter().enumerate().map(finding).collect()
    }

    #[test]
    fn a_last_layer_after_a_final_norm_is_noticed() {
        let found = |levels: &[f64]| last_layer_scale(&of_layers(levels).iter().collect::<Vec<_>>());
        assert_eq!(found(&[1.0, 1.3, 1.6, 2.0, 16.0]), ["hs_norm layer 4 has 8.00 times the mean of the layer before"]);
        assert_eq!(found(&[9.0, 11.0, 14.0, 3.5]).len(), 1, "smaller counts as well");
        assert!(found(&[1.0, 1.3, 1.6, 2.0, 2.6]).is_empty(), "growth as before");
        assert!(found(&[1.0, 3.0, 9.0, 30.0]).is_empty(), "every layer grows like that");
        assert!(found(&[1.0, 9.0]).is_empty(), "nothing to compare with");
    }
}
