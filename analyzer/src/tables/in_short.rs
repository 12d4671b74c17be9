//! What a study found, in five lines at most, and what it cannot mean.

use epikv_stats::power::min_detectable_rho;
use epikv_words::resampled_p;

use crate::study::baseline::{Baseline, EMBEDDING};
use crate::study::findings::Source;
use crate::study::settings::Settings;
use crate::tables::summary::{DatasetSummary, Summary, SummaryRow};

/// The lines as a block of a page; nothing without a problem set.
pub(crate) fn block(summary: &Summary, settings: &Settings) -> String {
    let lines = lines(summary, settings);
    if lines.is_empty() { String::new() } else { format!("**In short**\n\n- {}", lines.join("\n- ")) }
}

/// The lines, of the problem set with the most problems.
fn lines(summary: &Summary, settings: &Settings) -> Vec<String> {
    let Some(dataset) = summary.datasets.iter().max_by_key(|dataset| dataset.n_eff) else { return Vec::new() };
    let mut lines = Vec::new();
    lines.extend(strongest(dataset, settings));
    lines.extend(controls(dataset));
    if let Some(rho) = min_detectable_rho(dataset.n_eff as u64, 0.05, 0.8) {
        lines.push(format!(
            "With {} problems a |rho| below {rho:.2} is found in fewer than four of five such studies.",
            dataset.n_eff
        ));
    }
    lines.push(
        "A signal that ranks labels need not keep answers right under eviction: `epikv evict` tests that.".to_owned(),
    );
    lines
}

/// The row with the largest |rho| within traces from some source.
fn largest(dataset: &DatasetSummary, is: impl Fn(&SummaryRow) -> bool) -> Option<(&SummaryRow, f64)> {
    let rows = dataset.rows.iter().filter(|row| is(row)).filter_map(|row| Some((row, row.within?)));
    rows.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

fn strongest(dataset: &DatasetSummary, settings: &Settings) -> Option<String> {
    let (row, rho) = largest(dataset, |row| row.source == Source::Model.name() && row.signal != EMBEDDING)?;
    let p = row.p_cross.map_or_else(String::new, |p| {
        format!(", p {} before any correction for choosing it", resampled_p(p, settings.surrogates))
    });
    let interval = row.within_interval.map_or_else(String::new, |[lo, hi]| format!(" [{lo:+.2}, {hi:+.2}]"));
    let what = if row.what == "-" { String::new() } else { format!(", {}", row.what) };
    Some(format!(
        "{}: {} ({}{what}) ranks the labels best within traces: rho {rho:+.2}{interval}{p}.",
        dataset.dataset, row.signal, row.smoothing
    ))
}

/// What random weights and the position reach.
fn controls(dataset: &DatasetSummary) -> Option<String> {
    let random = largest(dataset, |row| row.source == Source::RandomWeights.name() && row.signal != EMBEDDING)
        .map(|(row, rho)| format!("random weights of the same shape reach {rho:+.2} ({})", row.signal));
    let position = largest(dataset, |row| row.signal == Baseline::Position.name())
        .map(|(_, rho)| format!("the position alone reaches {rho:+.2}"));
    let said: Vec<String> = random.into_iter().chain(position).collect();
    (!said.is_empty()).then(|| format!("For comparison {}.", said.join(", and ")))
}
