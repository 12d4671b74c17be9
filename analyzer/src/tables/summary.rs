//! Summary of a study in a few rows: the best layers, both bands, the paper's two layers, and the baselines.

use epikv_signals::{EPIKV_LAYERS, REFERENCE_LAYERS, SignalRow, Smoother, find, map_layer};
use serde::Serialize;

use crate::study::bands::{BAND_SIGNAL, Band, BandMean};
use crate::study::baseline::EMBEDDING;
use crate::study::findings::{DatasetFindings, Finding, Source};
use crate::study::lags::peak;
use crate::study::settings::Settings;

/// Smoothers whose bands and layers are shown, where they were asked for; without any of them, the first asked for.
const SHOWN: [Smoother; 2] = [Smoother::Mean, Smoother::Z];

/// Problems below which the interval to read is Student's t. Of 1,000 simulated studies the bootstrap's interval of a mean
/// over problems holds the truth in 85 % at 6 problems, 90 % at 10 and 94 % at 20, Student's t in 95 % at each.
pub(crate) const FEW_PROBLEMS: usize = 20;

/// A row: one column of the study, or a mean over a band of them. Undefined parts are null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SummaryRow {
    /// What they are computed from.
    pub source: &'static str,
    /// Signal or baseline.
    pub signal: &'static str,
    /// How it was smoothed.
    pub smoothing: String,
    /// Which layers, in words.
    pub what: String,
    /// Pooled rho.
    pub rho: Option<f64>,
    /// Its interval by the bootstrap over problems.
    pub boot: Option<[f64; 2]>,
    /// Its Fisher interval on usable problems; null for means.
    pub ci: Option<[f64; 2]>,
    /// Rho within traces.
    pub within: Option<f64>,
    /// Its interval by the bootstrap over problems; null for means.
    pub within_boot: Option<[f64; 2]>,
    /// The interval of rho within traces to read: Student's t on the means of the problems where there are fewer than
    /// `FEW_PROBLEMS`, which the bootstrap is too narrow for; else the bootstrap's.
    pub within_interval: Option<[f64; 2]>,
    /// Pooled rho over occluded windows; null for means and without labels of windows.
    pub window: Option<f64>,
    /// Distance of rho within traces from what other problems' labels give, in deviations of these; null for means.
    pub z_null: Option<f64>,
    /// Its p-value.
    pub p_cross: Option<f64>,
    /// The lag at which |rho| within traces is largest, and rho there; null without a lag profile.
    pub peak: Option<(i32, f64)>,
    /// Pooled AUC.
    pub auc: Option<f64>,
}

/// One problem set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatasetSummary {
    /// The problem set.
    pub dataset: String,
    /// Traces with usable labels.
    pub n_traces: usize,
    /// Traces that count.
    pub n_usable: usize,
    /// Traces that count for the position baseline, which is never constant: those with both labels.
    pub n_eff: usize,
    /// Their labelled tokens.
    pub n_tokens: u64,
    /// Share of important tokens among these.
    pub base_rate: Option<f64>,
    /// The largest |rho| that this share allows without ties in the signal.
    pub largest_rho: Option<f64>,
    /// Figures, those of the model first.
    pub rows: Vec<SummaryRow>,
}

/// All problem sets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Layers of the model.
    pub n_layers: usize,
    /// How the paper's bands and layers were mapped to this depth.
    pub mapping: Vec<String>,
    /// One each.
    pub datasets: Vec<DatasetSummary>,
}

impl Summary {
    /// Summarises a study of a model of `n_layers`.
    pub fn new(found: &[DatasetFindings], n_layers: usize, settings: &Settings) -> Self {
        let layer = |layer| match map_layer(layer, n_layers) {
            own if own == layer => format!("layer {layer}"),
            own => format!("layer {layer} of {REFERENCE_LAYERS} -> {own}"),
        };
        let bands = Band::both(n_layers).map(|band| band.describe());
        let mapping = bands.into_iter().chain(EPIKV_LAYERS.map(layer));
        Self {
            n_layers,
            mapping: mapping.collect(),
            datasets: found.iter().map(|dataset| DatasetSummary::new(dataset, n_layers, settings)).collect(),
        }
    }
}

impl DatasetSummary {
    fn new(found: &DatasetFindings, n_layers: usize, settings: &Settings) -> Self {
        let position = found.find(Source::None, "position", None, Smoother::Raw).map(|f| &f.correlation);
        let base_rate = position.and_then(|c| c.base_rate);
        let mut rows = Vec::new();
        // The step of the embedding stands with the baselines.
        let parts =
            [(Source::Model, false), (Source::RandomWeights, false), (Source::Model, true), (Source::None, false)];
        for (source, of_embedding) in parts {
            let is = |f: &&Finding| f.source == source && of_embedding == is_embedding(f.source, f.signal);
            let mut signals: Vec<&'static str> = found.findings.iter().filter(is).map(|f| f.signal).collect();
            signals.dedup();
            for signal in signals {
                rows.extend(best(found, source, signal, settings));
                if signal == BAND_SIGNAL {
                    rows.extend(bands_and_layers(found, source, n_layers, settings));
                }
            }
        }
        Self {
            dataset: found.dataset.clone(),
            n_traces: found.trace_ids.len(),
            n_usable: position.map_or(0, |c| c.n_usable),
            n_eff: position.map_or(0, |c| c.n_eff),
            n_tokens: position.map_or(0, |c| c.n_tokens),
            base_rate,
            largest_rho: base_rate.map(|p| (3.0 * p * (1.0 - p)).sqrt()),
            rows,
        }
    }
}

/// Whether a column is the baseline that the model's embedding gives.
fn is_embedding(source: Source, signal: &str) -> bool {
    source == Source::Model && signal == EMBEDDING
}

/// The column of a signal with the largest pooled |rho|; of equal ones the first.
fn best(found: &DatasetFindings, source: Source, signal: &str, settings: &Settings) -> Option<SummaryRow> {
    let own = found.findings.iter().filter(|f| f.source == source && f.signal == signal);
    let size = |f: &Finding| f.correlation.pooled.rho.map_or(-1.0, f64::abs);
    let best = own.reduce(|best, next| if size(next) > size(best) { next } else { best })?;
    let has_layers = find(signal).is_ok_and(SignalRow::has_layers);
    let what = match best.layer {
        Some(layer) if best.correlation.pooled.rho.is_some() => format!("best, layer {layer}"),
        None if best.correlation.pooled.rho.is_some() && has_layers => "best, mean of layers".to_owned(),
        _ => "-".to_owned(),
    };
    Some(row(best, what, settings))
}

/// Bands, their difference, and the paper's two layers; beside the model's, only the bands under one smoother.
fn bands_and_layers(found: &DatasetFindings, source: Source, n_layers: usize, settings: &Settings) -> Vec<SummaryRow> {
    let asked: Vec<Smoother> = SHOWN.into_iter().filter(|s| settings.smoothers.contains(s)).collect();
    let mut smoothers = if asked.is_empty() { settings.smoothers.iter().copied().take(1).collect() } else { asked };
    if source != Source::Model {
        smoothers.truncate(1);
    }
    let confidence = settings.confidence;
    let mut rows = Vec::new();
    for smoother in smoothers {
        let bands = Band::both(n_layers);
        let [a, b] = bands.each_ref().map(|band| BandMean::of(found, source, BAND_SIGNAL, smoother, band, confidence));
        let difference = a.minus(&b, confidence);
        let mean = |what: String, mean: BandMean| SummaryRow {
            source: source.name(),
            signal: BAND_SIGNAL,
            smoothing: smoother.name(settings.window),
            what,
            rho: mean.rho,
            boot: mean.boot_lo.zip(mean.boot_hi).map(<[f64; 2]>::from),
            ci: None,
            within: mean.within,
            within_boot: None,
            within_interval: None,
            window: None,
            z_null: None,
            p_cross: None,
            peak: None,
            auc: mean.auc,
        };
        for (band, of) in bands.iter().zip([a, b]) {
            rows.push(mean(
                format!("band {}, mean of layers {}", band.name, crate::study::bands::span(&band.layers)),
                of,
            ));
        }
        rows.push(mean("band A less band B".to_owned(), difference));
        if source != Source::Model {
            continue;
        }
        for layer in EPIKV_LAYERS {
            let own = map_layer(layer, n_layers);
            let column = found.find(source, BAND_SIGNAL, Some(own), smoother);
            let what = if own == layer { format!("layer {own}") } else { format!("layer {own} ({layer} of 32)") };
            rows.extend(column.map(|f| row(f, what, settings)));
        }
    }
    rows
}

fn row(finding: &Finding, what: String, settings: &Settings) -> SummaryRow {
    let (pooled, within) = (&finding.correlation.pooled, &finding.correlation.within);
    let student = within.ci_lo.zip(within.ci_hi).map(<[f64; 2]>::from);
    let within_boot = within.boot_lo.zip(within.boot_hi).map(<[f64; 2]>::from);
    SummaryRow {
        source: finding.source.name(),
        signal: finding.signal,
        smoothing: finding.smoother.name(settings.window),
        what,
        rho: pooled.rho,
        boot: pooled.boot_lo.zip(pooled.boot_hi).map(<[f64; 2]>::from),
        ci: pooled.ci_lo.zip(pooled.ci_hi).map(<[f64; 2]>::from),
        within: within.rho,
        within_boot,
        within_interval: if finding.correlation.n_eff < FEW_PROBLEMS { student } else { within_boot },
        window: finding.windows.as_ref().and_then(|w| w.pooled.rho),
        z_null: within.tested.z_null,
        p_cross: within.tested.p_cross,
        peak: peak(&finding.lags),
        auc: pooled.auc,
    }
}
