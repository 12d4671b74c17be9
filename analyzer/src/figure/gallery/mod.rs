//! All figures, each a file: from findings to a [`Chart`], or nothing where there is nothing to draw.

mod agreement;
mod datasets;
mod layers;
mod pairs;
mod scopes;
mod smoothing;
mod trend;
mod two_band;

use epikv_signals::Smoother;

use crate::beside::at_budget::AtBudget;
use crate::beside::reference::Reference;
use crate::study::findings::{DatasetFindings, Finding, Source};
use crate::study::settings::Settings;
use epikv_figures::Chart;

/// Stem of the files of the detailed figure, which a page shows first.
pub const LAYERS: &str = "figure_layers";

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

/// Problem sets that a figure of panels holds; more would be too small to read.
const MOST_DATASETS: usize = 4;

/// Input of a figure.
#[derive(Debug, Clone, Copy)]
struct Found<'a> {
    datasets: &'a [DatasetFindings],
    decided: &'a AtBudget,
    about: &'a About<'a>,
}

/// Stem of the files of each figure, and how it is made.
type Row = (&'static str, fn(&Found<'_>) -> Option<Chart>);

static ROWS: &[Row] = &[
    (LAYERS, layers::chart),
    ("figure_bands", two_band::chart),
    ("figure_smoothing", smoothing::chart),
    ("figure_scopes", scopes::chart),
    ("figure_trend", trend::chart),
    ("figure_datasets", datasets::chart),
    ("figure_agreement", agreement::chart),
    ("figure_pairs", pairs::chart),
];

/// Stems of the files of all figures.
pub const GALLERY: [&str; 8] = [
    LAYERS,
    "figure_bands",
    "figure_smoothing",
    "figure_scopes",
    "figure_trend",
    "figure_datasets",
    "figure_agreement",
    "figure_pairs",
];

/// Every figure that the findings have something for.
pub fn gallery(datasets: &[DatasetFindings], decided: &AtBudget, about: &About<'_>) -> Vec<Chart> {
    let found = Found { datasets, decided, about };
    ROWS.iter().filter_map(|(_, chart)| chart(&found)).collect()
}

impl Found<'_> {
    /// The first signal that has layers: `hs_l2` where it was recorded.
    fn signal(&self) -> Option<&'static str> {
        let of_model = |f: &&Finding| f.source == Source::Model && f.layer.is_some();
        self.datasets.iter().flat_map(|d| &d.findings).find(of_model).map(|f| f.signal)
    }

    /// Smoothers that were asked for, those that matter most first.
    fn smoothers(&self) -> Vec<Smoother> {
        let order = [Smoother::Mean, Smoother::Z, Smoother::Raw, Smoother::Ema, Smoother::Max];
        order.into_iter().filter(|smoother| self.about.settings.smoothers.contains(smoother)).collect()
    }

    /// `mean64`.
    fn name(&self, smoother: Smoother) -> String {
        smoother.name(self.about.settings.window)
    }

    /// The problem sets that are drawn as panels.
    fn shown(&self) -> &[DatasetFindings] {
        &self.datasets[..self.datasets.len().min(MOST_DATASETS)]
    }

    /// What every caption says.
    fn whose(&self) -> String {
        let left_out = self.datasets.len().saturating_sub(MOST_DATASETS);
        let more =
            if left_out > 0 { format!(" {left_out} more problem sets are in the tables.") } else { String::new() };
        format!("Model {}, {} layers.{more}", self.about.model, self.about.n_layers)
    }
}

/// Traces that count and base rate of a problem set, in words.
fn counts(dataset: &DatasetFindings) -> String {
    let position = dataset.find(Source::None, "position", None, Smoother::Raw).map(|f| &f.correlation);
    let n_eff = position.map_or(0, |c| c.n_eff);
    let rate = position.and_then(|c| c.base_rate).map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}"));
    format!("n_eff {n_eff} traces, base rate {rate}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_signal_of_layers_there_is_no_figure() {
        let settings = crate::study::settings::tests::settings();
        let about = About { model: "m", n_layers: 4, settings: &settings, reference: None };
        let none = AtBudget { budget: String::new(), agreements: Vec::new(), datasets: Vec::new(), n_infeasible: 0 };
        assert!(gallery(&[], &none, &about).is_empty());
    }

    #[test]
    fn the_list_names_every_figure() {
        assert_eq!(ROWS.iter().map(|(name, _)| *name).collect::<Vec<_>>(), GALLERY);
    }
}
