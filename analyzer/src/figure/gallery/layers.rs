//! The detailed figure: rho over layers, one problem set and smoother a panel, pooled rho with its bootstrap, rho within
//! traces, random weights and published coefficients.

use epikv_figures::shortened;
use epikv_signals::{REFERENCE_LAYERS, Smoother};

use super::super::look::{POOLED, PUBLISHED, RANDOM_WEIGHTS, WITHIN};
use super::super::shades;
use super::{About, Chart, Found, LAYERS};
use crate::beside::reference::{Reference, place_of_layer};
use crate::study::bands::Band;
use crate::study::findings::{DatasetFindings, Finding, Source};
use epikv_figures::layers::LineLook;
use epikv_figures::layers::{Line, LineChart, LinePanel, LinePoint};

/// Problem sets that the figure holds; more would be too small to read.
const MOST_DATASETS: usize = 3;

/// Smoothers that are shown where they were asked for, the two that matter most first.
const SHOWN: [Smoother; 4] = [Smoother::Mean, Smoother::Z, Smoother::Raw, Smoother::Ema];

/// Smoothers side by side.
const SIDE_BY_SIDE: usize = 2;

/// A line of a panel: its name, whose signal it is, its look, and its points.
type Shown = (&'static str, Source, &'static LineLook, fn(&Finding) -> (Option<f64>, Option<(f64, f64)>));

const LINES: [Shown; 3] = [
    ("pooled, with bootstrap", Source::Model, &POOLED, |f| {
        let figure = &f.correlation.pooled;
        (figure.rho, figure.boot_lo.zip(figure.boot_hi))
    }),
    ("within traces", Source::Model, &WITHIN, |f| (f.correlation.within.rho, None)),
    ("random weights, pooled", Source::RandomWeights, &RANDOM_WEIGHTS, |f| (f.correlation.pooled.rho, None)),
];

/// The first signal that has layers (published coefficients exist for `hs_l2` only), two smoothers, up to three problem
/// sets.
pub(super) fn chart(found: &Found<'_>) -> Option<Chart> {
    let (signal, about) = (found.signal()?, found.about);
    let reference = about.reference.filter(|_| signal == "hs_l2");
    let asked = |smoother: &Smoother| about.settings.smoothers.contains(smoother);
    let smoothers: Vec<Smoother> = SHOWN.into_iter().filter(asked).take(SIDE_BY_SIDE).collect();
    let shown = found.datasets.iter().take(MOST_DATASETS);
    let panels = shown
        .flat_map(|dataset| smoothers.iter().map(move |&smoother| panel(dataset, signal, smoother, about, reference)));
    let bands = Band::both(about.n_layers);
    Some(Chart::Lines(LineChart {
        name: LAYERS,
        title: format!("Spearman's rho of {signal} over layers"),
        y_label: "Spearman's rho",
        n_layers: about.n_layers,
        panels: panels.collect(),
        columns: smoothers.len(),
        caption: caption(signal, &bands, found.datasets.len(), about, reference),
        bands: shades(&bands),
    }))
}

fn panel(
    dataset: &DatasetFindings,
    signal: &'static str,
    smoother: Smoother,
    about: &About<'_>,
    reference: Option<&Reference>,
) -> LinePanel {
    let line = |&(name, source, look, of): &Shown| {
        let point = |layer| {
            let (y, ribbon) = of(dataset.find(source, signal, Some(layer), smoother)?);
            Some(LinePoint { layer, y, ribbon, ..LinePoint::default() })
        };
        Line::new(name, (0..about.n_layers).filter_map(point).collect()).looking(look)
    };
    let published = |reference: &Reference| {
        let point = |(layer, rho)| {
            let place = Some(place_of_layer(layer, about.n_layers));
            LinePoint { layer, place, y: Some(rho), ..LinePoint::default() }
        };
        let points = reference.layers(smoother).into_iter().map(point).collect();
        Line::new(format!("published ({})", reference.name), points).looking(&PUBLISHED)
    };
    let lines = LINES.iter().map(line).chain(reference.map(published));
    LinePanel {
        heading: format!("{}, {}", shortened(&dataset.dataset), smoother.name(about.settings.window)),
        note: counts(dataset, signal, smoother),
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
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
            "Ribbon: {percent:.0} % bootstrap over problems of pooled rho (BCa, {} replicates, seed {}).",
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
