//! Notes of the report beside its table: what looks wrong, and the effects of smoothing, rotation, position and the
//! number of problems. Each note is one file and gives Markdown lines, or none.

mod detectors;
mod lags;
mod position;
mod power;
mod rotation;
mod smoothing;

use std::fmt::Write as _;

use crate::study::findings::DatasetFindings;
use crate::study::settings::Settings;

/// All parts, by problem set.
pub fn notes(found: &[DatasetFindings], settings: &Settings) -> String {
    let mut text = String::new();
    section(&mut text, "Looks wrong", &detectors::lines(found, settings));
    section(&mut text, "Number of problems", &each(found, |dataset| power::lines(dataset, settings)));
    section(&mut text, "Position", &each(found, position::lines));
    section(&mut text, "Smoothing", &each(found, |dataset| smoothing::lines(dataset, settings)));
    section(&mut text, "Lags", &each(found, |dataset| lags::lines(dataset, settings)));
    section(&mut text, "Keys before and after rotation", &each(found, rotation::lines));
    text.trim_end().to_owned()
}

fn each(found: &[DatasetFindings], lines: impl Fn(&DatasetFindings) -> Vec<String>) -> Vec<String> {
    found.iter().flat_map(|d| lines(d).into_iter().map(|line| format!("{}: {line}", d.dataset))).collect()
}

fn section(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "## {title}\n");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
    text.push('\n');
}

/// `hs_l2 layer 3`, or the name alone.
fn name(signal: &str, layer: Option<usize>) -> String {
    layer.map_or_else(|| signal.to_owned(), |layer| format!("{signal} layer {layer}"))
}

/// The first few names, and how many there are besides.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..8).map(|i| name("s", Some(i))).collect();
        assert_eq!(list(&names[..2]), "s layer 0, s layer 1");
        assert!(list(&names).ends_with("s layer 5 and 2 more"));
    }
}
