//! The page of a run.

use std::path::Path;

use crate::figure::{Chart, LAYERS};
use crate::record::WindowFrom;
use crate::study::settings::Settings;
use crate::tables::in_short;
use crate::tables::report::markdown;
use crate::tables::summary::Summary;

/// The page of a run.
pub struct Page<'r> {
    /// The model.
    pub model: &'r str,
    /// Traces that were recorded.
    pub n_samples: usize,
    /// Traces without usable labels.
    pub n_unusable: usize,
    /// What could not be recorded and why.
    pub failures: &'r [String],
    /// The summary.
    pub summary: &'r Summary,
    /// What was asked.
    pub settings: &'r Settings,
    /// The figures.
    pub charts: &'r [Chart],
    /// What stands beside the table; an empty one says nothing.
    pub sections: &'r [String],
    /// What a reader must know.
    pub notes: &'r [String],
}

impl Page<'_> {
    /// The page of a run over the traces of a file.
    pub fn markdown(&self, traces: &Path) -> String {
        let Self { settings, failures, .. } = self;
        let name = traces.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let list = |lines: &[String]| lines.iter().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n");
        let mut page = vec![
            "# Signals against labels".to_owned(),
            in_short::block(self.summary, settings),
            format!(
                "Model {}, {} layers. {} traces of {name} with usable labels, {} without, {} failed. Smoothers over {} \
                 tokens, started at {}.",
                self.model,
                self.summary.n_layers,
                self.n_samples,
                self.n_unusable,
                failures.len(),
                settings.window,
                match settings.window_from {
                    WindowFrom::Decode => "the first decoded token",
                    WindowFrom::Prompt => "the prompt's first token",
                }
            ),
        ];
        let (first, more): (Vec<_>, Vec<_>) = self.charts.iter().partition(|chart| chart.name() == LAYERS);
        let shown = |chart: &Chart| format!("![{}]({}.svg)", chart.title(), chart.name());
        page.extend(first.into_iter().map(shown));
        page.push(markdown(self.summary, settings).trim_end().to_owned());
        page.extend_from_slice(self.sections);
        page.extend(more.into_iter().map(shown));
        page.push(list(self.notes));
        if !failures.is_empty() {
            page.push(format!("Failed:\n\n{}", list(failures)));
        }
        page.retain(|part| !part.is_empty());
        page.push("All columns: `correlations.parquet`; each trace: `correlations_by_trace.parquet`.".to_owned());
        page.join("\n\n") + "\n"
    }
}
