//! Which findings are drawn, and what is said about them.

use epikv_signals::{REFERENCE_LAYERS, Smoother};

use super::plot::{Panel, Plot, Point, Series, SeriesKind};
use crate::bands::Band;
use crate::findings::{DatasetFindings, Finding, Source};
use crate::reference::{Reference, place_of_layer};
use crate::study::Settings;

/// Problem sets that a figure holds; more would be too small to read.
const MOST_DATASETS: usize = 3;

/// Smoothers that a figure shows where they were asked for, the two that matter most first.
const SHOWN: [Smoother; 4] = [Smoother::Mean, Smoother::Z, Smoother::Raw, Smoother::Ema];

/// Smoothers side by side.
const SIDE_BY_SIDE: usize = 2;

/// What a figure is about, besides the findings.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Name of the model.
    pub model: &'a str,
    /// Its layers.
    pub n_layers: usize,
    /// The study's settings.
    pub settings: &'a Settings,
    /// Published coefficients to draw as well.
    pub reference: Option<&'a Reference>,
}

impl Plot {
    /// Chooses what to draw: the first signal that has layers (published coefficients exist for the step norm only), two
    /// smoothers, up to three problem sets. `None` if no signal has layers.
    pub fn new(found: &[DatasetFindings], about: &About<'_>) -> Option<Self> {
        let of_model = |f: &&Finding| f.source == Source::Model && f.layer.is_some();
        let signal = found.iter().flat_map(|d| &d.findings).find(of_model)?.signal;
        let reference = about.reference.filter(|_| signal == "hs_l2");
        let asked = |smoother: &Smoother| about.settings.smoothers.contains(smoother);
        let smoothers: Vec<Smoother> = SHOWN.into_iter().filter(asked).take(SIDE_BY_SIDE).collect();
        let shown = &found[..found.len().min(MOST_DATASETS)];
        let panel = |dataset, smoother| panel(dataset, signal, smoother, about, reference);
        let panels = shown.iter().flat_map(|dataset| smoothers.iter().map(move |&smoother| panel(dataset, smoother)));
        let bands = Band::both(about.n_layers);
        Some(Self {
            signal,
            n_layers: about.n_layers,
            panels: panels.collect(),
            columns: smoothers.len(),
            reference: reference.map(|r| r.name.clone()),
            caption: caption(signal, &bands, found.len(), about, reference),
            bands,
        })
    }
}

/// A coefficient and its interval.
type Drawn = (Option<f64>, Option<(f64, f64)>);

fn panel(
    dataset: &DatasetFindings,
    signal: &'static str,
    smoother: Smoother,
    about: &About<'_>,
    reference: Option<&Reference>,
) -> Panel {
    let find = |source, layer| dataset.find(source, signal, Some(layer), smoother);
    let line = |source, kind, point: fn(&Finding) -> Drawn| {
        let points: Vec<Point> = (0..about.n_layers)
            .filter_map(|layer| {
                let (rho, interval) = point(find(source, layer)?);
                Some(Point { layer, x: layer as f64, rho, interval })
            })
            .collect();
        (!points.is_empty()).then_some(Series { kind, points })
    };
    let pooled = |f: &Finding| {
        let figure = &f.correlation.pooled;
        (figure.rho, figure.boot_lo.zip(figure.boot_hi))
    };
    let published = |layer: usize, rho: f64| Point {
        layer,
        x: place_of_layer(layer, about.n_layers),
        rho: Some(rho),
        interval: None,
    };
    let series = SeriesKind::ALL.into_iter().filter_map(|kind| match kind {
        SeriesKind::Pooled => line(Source::Model, kind, pooled),
        SeriesKind::Within => line(Source::Model, kind, |f| (f.correlation.within.rho, None)),
        SeriesKind::RandomWeights => line(Source::RandomWeights, kind, |f| (f.correlation.pooled.rho, None)),
        SeriesKind::Reference => {
            let points: Vec<Point> =
                reference?.layers(smoother).into_iter().map(|(l, rho)| published(l, rho)).collect();
            (!points.is_empty()).then_some(Series { kind, points })
        }
    });
    Panel {
        dataset: dataset.dataset.clone(),
        smoothing: smoother.name(about.settings.window),
        counts: counts(dataset, signal, smoother),
        series: series.collect(),
    }
}

/// Traces, tokens and base rate of a panel, in words.
fn counts(dataset: &DatasetFindings, signal: &str, smoother: Smoother) -> String {
    let own =
        dataset.findings.iter().filter(|f| f.source == Source::Model && f.signal == signal && f.smoother == smoother);
    let own: Vec<&Finding> = own.collect();
    let range = |of: fn(&Finding) -> u64| {
        let all = own.iter().map(|f| of(f));
        match (all.clone().min(), all.max()) {
            (Some(least), Some(most)) if least != most => format!("{least}-{most}"),
            (_, most) => most.unwrap_or(0).to_string(),
        }
    };
    let base_rate = own.iter().find_map(|f| f.correlation.base_rate);
    let base_rate = base_rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}"));
    format!(
        "n_eff {} traces, {} tokens, base rate {base_rate}",
        range(|f| f.correlation.n_eff as u64),
        range(|f| f.correlation.n_tokens)
    )
}

fn caption(
    signal: &str,
    bands: &[Band; 2],
    n_datasets: usize,
    about: &About<'_>,
    reference: Option<&Reference>,
) -> Vec<String> {
    let settings = about.settings;
    let percent = 100.0 * settings.confidence.level();
    let mut caption = vec![
        format!("Spearman's rho of {signal} with the occlusion label of a token, over tested reasoning tokens."),
        format!("Model {}, {} layers.", about.model, about.n_layers),
        format!(
            "Ribbon: {percent:.0} % trace bootstrap of pooled rho (BCa, {} replicates, seed {}).",
            settings.replicates, settings.seed
        ),
        format!("Shaded: {}; {}.", bands[0].describe(), bands[1].describe()),
    ];
    if let Some(reference) = reference {
        let what = if about.n_layers == REFERENCE_LAYERS { "" } else { ", layers at their relative depth" };
        caption.push(format!("Published: {}, tokens of another run{what}.", reference.name));
    }
    if n_datasets > MOST_DATASETS {
        caption.push(format!("The first {MOST_DATASETS} of {n_datasets} problem sets."));
    }
    caption
}

#[cfg(test)]
mod tests {
    use epikv_stats::{Confidence, FisherMethod};

    use super::*;
    use crate::record::WindowFrom;

    #[test]
    fn without_a_signal_of_layers_there_is_no_figure() {
        let settings = Settings {
            smoothers: vec![Smoother::Raw],
            window: 64,
            window_from: WindowFrom::Decode,
            confidence: Confidence::P95,
            fisher: FisherMethod::Plain,
            replicates: 0,
            surrogates: 0,
            seed: 0,
            max_lag: 0,
            pools: Vec::new(),
        };
        let about = About { model: "m", n_layers: 4, settings: &settings, reference: None };
        assert_eq!(Plot::new(&[], &about), None);
    }
}
