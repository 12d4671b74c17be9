//! The summary as Markdown with aligned columns, which is readable in a terminal too.

use std::fmt::Write as _;

use epikv_words::resampled_p;

use crate::study::baseline::EMBEDDING;
use crate::study::findings::Source;
use crate::study::settings::Settings;
use crate::tables::summary::{DatasetSummary, FEW_PROBLEMS, Summary, SummaryRow};

/// Columns of the table.
const N: usize = 10;

const HEADER: [&str; N] = [
    "source",
    "signal",
    "smoothing",
    "layers",
    "pooled rho [bootstrap]",
    "within rho [interval]",
    "z (p) of within",
    "peak of within",
    "window rho",
    "AUC",
];

/// All tables with the notes that belong to them.
pub fn markdown(summary: &Summary, settings: &Settings) -> String {
    let mut text = String::new();
    for dataset in &summary.datasets {
        heading(&mut text, dataset);
        let rows: Vec<[String; N]> = dataset.rows.iter().map(|row| cells(row, settings.surrogates)).collect();
        table(&mut text, &rows);
        text.push('\n');
    }
    let percent = 100.0 * settings.confidence.level();
    let notes = [
        format!("{}.", summary.mapping.join("; ")),
        format!(
            "The unit is the problem: a figure is the mean over problems of the mean over their samples. Brackets: {percent:.0} % \
             BCa interval over {} resamples of whole problems (seed {}); - where it is undefined, as for a single problem. \
             Below {FEW_PROBLEMS} problems the interval of rho within traces is Student's t on the means of problems: there BCa \
             is too narrow (it holds the truth in 85 % of simulated studies of 6 problems and 90 % of 10).",
            settings.replicates, settings.seed
        ),
        format!(
            "The `{}` interval on n_eff problems (columns ci_lo, ci_hi) is a convention for comparison with published tables, \
             not a sampling theory of a coefficient over tokens.",
            settings.fisher.name()
        ),
        "\"best\" was chosen by |rho| on these same problems, so its rho is biased upwards; bands and layers 10 and 21 \
         were not chosen \
         here."
            .to_owned(),
        "Rows of `random_weights` are the same signals of the same tokens through random weights of the same shape; \
         `embed_l2` is the step of the embedding before any block, `position` the token index and `token_identity` the mean \
         label of the same token in the other problems. A signal that does no better says nothing about the model."
            .to_owned(),
        "Pooled rho mixes differences between traces with ranking inside them; rho within traces does not.".to_owned(),
        format!(
            "z: how far rho within traces (in Fisher's z) lies from its mean under the labels of other problems at matched \
             relative position, in deviations of these ({} replicates); smoothing widens that spread. p is not corrected \
             for the choice of a best layer: `p_maxt` and `q_bh` in the file are. Peak: the lag, up to {} tokens, at which |rho| \
             within traces is largest, positive where the signal is later than the label. Window rho has the mean of the signal over \
             each occluded window against whether the answer flipped.",
            settings.surrogates, settings.max_lag
        ),
    ];
    for note in notes {
        let _ = writeln!(text, "- {note}");
    }
    text
}

fn heading(text: &mut String, dataset: &DatasetSummary) {
    let DatasetSummary { n_traces, n_usable, n_eff, n_tokens, .. } = dataset;
    let share = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    let _ = writeln!(
        text,
        "{}: {n_eff} problems (n_eff), {n_usable} of {n_traces} traces count, {n_tokens} tokens, base rate {} (|rho| is at most {})\n",
        dataset.dataset,
        share(dataset.base_rate),
        share(dataset.largest_rho)
    );
}

fn cells(row: &SummaryRow, surrogates: usize) -> [String; N] {
    let is_baseline =
        row.source == Source::None.name() || (row.source, row.signal) == (Source::Model.name(), EMBEDDING);
    let source = if is_baseline { "baseline" } else { row.source };
    let rho = match (row.rho, row.boot) {
        (Some(rho), Some([lo, hi])) => format!("{rho:+.3} [{lo:+.3}, {hi:+.3}]"),
        (Some(rho), None) => format!("{rho:+.3} [-]"),
        (None, _) => "-".to_owned(),
    };
    let signed = |rho: Option<f64>| rho.map_or_else(|| "-".to_owned(), |rho| format!("{rho:+.3}"));
    let window = signed(row.window);
    let within = match (row.within, row.within_interval) {
        (Some(rho), Some([lo, hi])) => format!("{rho:+.3} [{lo:+.3}, {hi:+.3}]"),
        (rho, _) => signed(rho),
    };
    let z = match (row.z_null, row.p_cross) {
        (Some(z), Some(p)) => format!("{z:+.1} ({})", resampled_p(p, surrogates)),
        _ => "-".to_owned(),
    };
    let peak = row.peak.map_or_else(|| "-".to_owned(), |(lag, rho)| format!("{rho:+.3} at {lag:+}"));
    let auc = row.auc.map_or_else(|| "-".to_owned(), |auc| format!("{auc:.3}"));
    [source, row.signal, &row.smoothing, &row.what, &rho, &within, &z, &peak, &window, &auc].map(str::to_owned)
}

/// A Markdown table; `|` in a cell, which only a name from outside could hold, is escaped.
fn table(text: &mut String, rows: &[[String; N]]) {
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(|cell| cell.replace('|', "\\|"))).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0).max(HEADER[at].len());
    let mut line = |cells: [&str; N]| {
        let padded: Vec<String> = (0..N).map(|at| format!("{:<width$}", cells[at], width = width(at))).collect();
        let _ = writeln!(text, "| {} |", padded.join(" | "));
    };
    line(HEADER);
    line(std::array::from_fn::<_, N, _>(|at| "-".repeat(width(at))).each_ref().map(String::as_str));
    for row in &rows {
        line(row.each_ref().map(String::as_str));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rho: Option<f64>, boot: Option<[f64; 2]>) -> SummaryRow {
        SummaryRow {
            source: "none",
            signal: "position",
            smoothing: "raw".to_owned(),
            what: "-".to_owned(),
            rho,
            boot,
            ci: None,
            within: None,
            within_boot: None,
            within_interval: None,
            window: None,
            z_null: None,
            p_cross: None,
            peak: None,
            auc: Some(0.5),
        }
    }

    #[test]
    fn undefined_is_a_dash() {
        assert_eq!(cells(&row(None, None), 199)[4..], ["-", "-", "-", "-", "-", "0.500"].map(str::to_owned));
        assert_eq!(cells(&row(Some(0.25), None), 199)[4], "+0.250 [-]");
        assert_eq!(cells(&row(Some(-0.25), Some([-0.5, 0.125])), 199)[4], "-0.250 [-0.500, +0.125]");
    }

    #[test]
    fn columns_line_up() {
        let mut text = String::new();
        table(&mut text, &[cells(&row(Some(0.1), None), 199), cells(&row(Some(-0.1), Some([-0.2, 0.0])), 199)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{text}");
    }
}
