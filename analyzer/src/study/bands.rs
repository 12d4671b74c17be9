//! The two bands of layers that the paper names, at the depth of the model at hand.
//!
//! Band A is layers 7 to 13 of 32, where the paper finds positive rho, band B is 18 to 25, where it finds negative rho.
//! Both were declared before any figure of this run, so the mean over their layers needs no correction for choosing.
//! Its interval comes from the bootstrap over problems of that mean, since neighbouring layers are not independent.

use std::ops::RangeInclusive;

use epikv_signals::{REFERENCE_LAYERS, Smoother, map_layer};
use epikv_stats::Confidence;
use epikv_stats::moments::mean;

use crate::study::findings::{DatasetFindings, Finding, Source};
use crate::study::resamples::Draws;

/// Name and layers of the reference model, both ends included.
const BANDS: [(&str, RangeInclusive<usize>); 2] = [("A", 7..=13), ("B", 18..=25)];

/// The signal that the bands are about.
pub(crate) const BAND_SIGNAL: &str = "hs_l2";

/// A band of layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Band {
    /// `A` or `B`.
    pub name: &'static str,
    /// Layers of the reference model.
    pub reference: RangeInclusive<usize>,
    /// Layers of the model at hand.
    pub layers: RangeInclusive<usize>,
}

impl Band {
    /// Both bands in a model of `n_layers`.
    pub fn both(n_layers: usize) -> [Self; 2] {
        BANDS.map(|(name, reference)| {
            let layers = map_layer(*reference.start(), n_layers)..=map_layer(*reference.end(), n_layers);
            Self { name, reference, layers }
        })
    }

    /// The mapping in words.
    pub fn describe(&self) -> String {
        let Self { name, reference, layers } = self;
        if layers == reference {
            return format!("band {name} = layers {}", span(layers));
        }
        format!("band {name} = layers {} of {REFERENCE_LAYERS} -> {}", span(reference), span(layers))
    }
}

/// `3-5`, or `3` for a single layer.
pub(crate) fn span(layers: &RangeInclusive<usize>) -> String {
    if layers.start() == layers.end() {
        layers.start().to_string()
    } else {
        format!("{}-{}", layers.start(), layers.end())
    }
}

/// The mean over the layers of a band, or a difference of such means. Undefined parts are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BandMean {
    /// Mean of the pooled rho.
    pub rho: Option<f64>,
    /// Its lower bound by the bootstrap over problems.
    pub boot_lo: Option<f64>,
    /// Its upper bound by the bootstrap over problems.
    pub boot_hi: Option<f64>,
    /// Mean of rho within traces.
    pub within: Option<f64>,
    /// Mean of the pooled AUC; `None` for a difference.
    pub auc: Option<f64>,
    /// Replicates of `rho`.
    pub draws: Draws,
}

impl BandMean {
    /// The mean of a signal over a band.
    pub fn of(
        found: &DatasetFindings,
        source: Source,
        signal: &str,
        smoother: Smoother,
        band: &Band,
        confidence: Confidence,
    ) -> Self {
        let find = |layer| found.find(source, signal, Some(layer), smoother);
        let Some(layers) = band.layers.clone().map(find).collect::<Option<Vec<&Finding>>>() else {
            return Self::default();
        };
        let mean_of = |figure: fn(&Finding) -> Option<f64>| {
            layers.iter().map(|finding| figure(finding)).collect::<Option<Vec<f64>>>().and_then(|all| mean(&all))
        };
        let weight = 1.0 / layers.len() as f64;
        // Layers over other traces have other draws, and then there is no interval.
        let same = layers.windows(2).all(|w| usable(w[0]) == usable(w[1]));
        let parts: Vec<(f64, &Draws)> = layers.iter().map(|f| (weight, &f.correlation.pooled.draws)).collect();
        let draws = if same { Draws::combine(&parts) } else { Draws::default() };
        Self {
            rho: mean_of(|f| f.correlation.pooled.rho),
            within: mean_of(|f| f.correlation.within.rho),
            auc: mean_of(|f| f.correlation.pooled.auc),
            ..Self::default()
        }
        .with_draws(draws, confidence)
    }

    /// This less another, replicate by replicate.
    #[must_use]
    pub fn minus(&self, other: &Self, confidence: Confidence) -> Self {
        let difference = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
        let draws = Draws::combine(&[(1.0, &self.draws), (-1.0, &other.draws)]);
        let (rho, within) = (difference(self.rho, other.rho), difference(self.within, other.within));
        Self { rho, within, ..Self::default() }.with_draws(draws, confidence)
    }

    fn with_draws(self, draws: Draws, confidence: Confidence) -> Self {
        let interval = self.rho.and_then(|rho| draws.interval(rho, confidence));
        Self { boot_lo: interval.map(|i| i.0), boot_hi: interval.map(|i| i.1), draws, ..self }
    }
}

/// Which traces count.
fn usable(finding: &Finding) -> Vec<bool> {
    finding.correlation.by_trace.iter().map(Result::is_ok).collect()
}

#[cfg(test)]
mod tests {
    use epikv_stats::FisherMethod;

    use super::*;
    use crate::study::correlate::{Intervals, correlate};
    use crate::study::findings::TraceShape;
    use crate::study::join::Labelled;
    use crate::study::problems::Problems;
    use crate::study::resamples::Resamples;

    #[test]
    fn bands_follow_the_depth() {
        let layers = |n_layers| Band::both(n_layers).map(|band| band.layers);
        assert_eq!(layers(32), [7..=13, 18..=25]);
        assert_eq!(layers(28), [6..=11, 16..=22]);
        assert_eq!(layers(4), [0..=1, 2..=3]);
        assert_eq!(Band::both(32)[1].describe(), "band B = layers 18-25");
        assert_eq!(Band::both(4)[0].describe(), "band A = layers 7-13 of 32 -> 0-1");
        assert_eq!(Band::both(2)[1].describe(), "band B = layers 18-25 of 32 -> 1");
    }

    #[test]
    fn means_and_differences_carry_their_replicates() {
        let resamples = Resamples::new(3, 100);
        let (confidence, fisher) = (Confidence::P95, FisherMethod::Plain);
        let intervals = Intervals { confidence, fisher, resamples: &resamples, n_surrogates: 0 };
        let finding = |layer: usize| {
            let value = |i: usize, t: usize| (i * (3 + layer) + t * layer) % 11;
            let trace =
                |t: usize| Labelled::new((0..20).map(|i| (Some(value(i, t) as f32), (i + t).is_multiple_of(3))));
            let traces: Vec<Labelled> = (0..6).map(trace).collect();
            let correlation = correlate(&traces, &intervals);
            let shapes: Vec<TraceShape> = Vec::new();
            Finding {
                source: Source::Model,
                signal: "s",
                layer: Some(layer),
                smoother: Smoother::Raw,
                correlation,
                windows: None,
                shapes,
                lags: Vec::new(),
            }
        };
        let found = DatasetFindings {
            dataset: "d".to_owned(),
            is_pooled: false,
            trace_ids: Vec::new(),
            problem_ids: Vec::new(),
            problems: Problems::default(),
            findings: (0..4).map(finding).collect(),
        };
        let bands = Band::both(4);
        let [a, b] =
            bands.each_ref().map(|band| BandMean::of(&found, Source::Model, "s", Smoother::Raw, band, Confidence::P95));
        let rho = |layer: usize| found.findings[layer].correlation.pooled.rho.expect("defined");
        assert!((a.rho.expect("defined") - f64::midpoint(rho(0), rho(1))).abs() < 1e-15);
        assert!(a.boot_lo < a.rho && a.rho < a.boot_hi, "{a:?}");
        let difference = a.minus(&b, Confidence::P95);
        assert!((difference.rho.expect("defined") - (rho(0) + rho(1) - rho(2) - rho(3)) / 2.0).abs() < 1e-15);
        assert_eq!(difference.draws.replicates.len(), 100);
        let absent = BandMean::of(&found, Source::None, "s", Smoother::Raw, &bands[0], Confidence::P95);
        assert_eq!(absent, BandMean::default());
    }
}
