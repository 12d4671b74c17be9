//! Published coefficients to draw beside our own: a CSV table with the columns `signal` and `spearman_rho`.
//!
//! Rows of `hs_l2` are named `hs_l2_diff_lN`, `hs_l2_lN`, or `hs_l2` with `N` in a column `layer`. A smoothed row ends
//! with `_rolling64` or `_mean64` for a mean, or `_ema09`. `N` is a layer of the reference model. Other rows are kept
//! under their names. A row that cannot be understood is an error that names its line and column.

use std::collections::BTreeMap;
use std::path::Path;

use epikv_schemas::fs::read_text;
use epikv_signals::{REFERENCE_LAYERS, Smoother};

use crate::error::{Error, Result};

/// A table of a few hundred rows; more is another kind of file.
const MOST_BYTES: u64 = 4 << 20;

const PREFIX: &str = "hs_l2_diff_l";

/// What the rows of the step norm are named.
const NAMES: &str = "hs_l2_diff_lN or hs_l2_lN, or hs_l2 with a column layer";

/// Published coefficients of the step norm.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Name of the file.
    pub name: String,
    rho: BTreeMap<(Smoother, usize), f64>,
    /// Every row that has a coefficient, by its published name.
    all: BTreeMap<String, f64>,
}

impl Reference {
    /// Reads a table.
    ///
    /// # Errors
    /// If the file cannot be read, lacks a column, has a row that cannot be understood, or no row of the step norm.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read_text(path, MOST_BYTES)?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let wrong = |line: usize, column: &str, expected: String, got: &str| Error::BadReference {
            path: path.to_owned(),
            line,
            column: column.to_owned(),
            expected,
            got: shortened(got),
        };
        let mut lines =
            text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim().is_empty());
        let (line, header) = lines.next().ok_or_else(|| wrong(1, "signal", "a header".to_owned(), "an empty file"))?;
        let header = fields(header.trim_start_matches('\u{feff}'));
        let place = |column: &str| {
            let at = header.iter().position(|name| name == column);
            at.ok_or_else(|| wrong(line, column, "a column of that name".to_owned(), &header.join(",")))
        };
        let (signal, rho) = (place("signal")?, place("spearman_rho")?);
        let layer_column = place("layer").ok();
        let (mut read, mut all) = (BTreeMap::new(), BTreeMap::new());
        for (line, text) in lines {
            let row = fields(text);
            if row.len() != header.len() {
                let (expected, got) = (format!("{} fields", header.len()), format!("{} fields", row.len()));
                return Err(wrong(line, "signal", expected, &got));
            }
            let value = row[rho].parse::<f64>().ok().filter(|value| (-1.0..=1.0).contains(value));
            let Some((layer, suffix)) = step_norm(&row[signal], layer_column.map(|at| row[at].as_str())) else {
                all.extend(value.map(|value| (row[signal].clone(), value)));
                continue;
            };
            let layer = layer.parse::<usize>().ok().filter(|&layer| layer < REFERENCE_LAYERS);
            let (Some(layer), Some((smoother, suffix))) = (layer, smoother_of(suffix)) else {
                let expected =
                    format!("{NAMES}, N below {REFERENCE_LAYERS}, with _rolling64, _mean64, _ema09 or nothing behind");
                return Err(wrong(line, "signal", expected, &row[signal]));
            };
            // The authors' scripts leave undefined coefficients empty.
            if row[rho].is_empty() {
                continue;
            }
            let value =
                value.ok_or_else(|| wrong(line, "spearman_rho", "a number in [-1, 1]".to_owned(), &row[rho]))?;
            all.insert(format!("{PREFIX}{layer}{suffix}"), value);
            if read.insert((smoother, layer), value).is_some() {
                return Err(wrong(line, "signal", "one row a signal".to_owned(), &row[signal]));
            }
        }
        if read.is_empty() {
            return Err(wrong(line, "signal", format!("rows named {NAMES}"), "none"));
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { name, rho: read, all })
    }

    /// The published coefficient of a signal, by its published name.
    pub fn rho(&self, signal: &str) -> Option<f64> {
        self.all.get(signal).copied()
    }

    /// Published names that have a coefficient.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(String::as_str)
    }

    /// Layers of the reference model with their coefficients under a smoother; empty where the table has none.
    pub fn layers(&self, smoother: Smoother) -> Vec<(usize, f64)> {
        let own = self.rho.iter().filter(|((s, _), _)| *s == smoother);
        own.map(|((_, layer), &rho)| (*layer, rho)).collect()
    }
}

/// Where a layer of the reference model stands on an axis of `n_layers`: at its relative depth, `(l + 1/2) L/32 - 1/2`.
pub(crate) fn place_of_layer(layer: usize, n_layers: usize) -> f64 {
    (layer as f64 + 0.5) * n_layers as f64 / REFERENCE_LAYERS as f64 - 0.5
}

/// The layer and what stands behind it, in the name of a row of the step norm; `None` for another row.
fn step_norm<'r>(signal: &'r str, layer: Option<&'r str>) -> Option<(&'r str, &'r str)> {
    let is_number = |rest: &&str| rest.starts_with(|letter: char| letter.is_ascii_digit());
    let named = signal.strip_prefix(PREFIX).or_else(|| signal.strip_prefix("hs_l2_l").filter(is_number));
    if let Some(rest) = named {
        return Some(rest.split_once('_').unwrap_or((rest, "")));
    }
    let layer = layer.filter(|layer| !layer.is_empty())?;
    let suffix = signal.strip_prefix("hs_l2")?;
    if suffix.is_empty() {
        Some((layer, ""))
    } else {
        Some((layer, suffix.strip_prefix('_')?)).filter(|(_, suffix)| smoother_of(suffix).is_some())
    }
}

/// A smoother, and what stands for it behind a published name.
fn smoother_of(suffix: &str) -> Option<(Smoother, &'static str)> {
    match suffix {
        "" => Some((Smoother::Raw, "")),
        "rolling64" | "mean64" => Some((Smoother::Mean, "_rolling64")),
        "ema09" => Some((Smoother::Ema, "_ema09")),
        _ => None,
    }
}

/// The fields of a line; a field in double quotes may hold commas and doubled quotes.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                field.push('"');
                letters.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field).trim().to_owned()),
            _ => field.push(letter),
        }
    }
    all.push(field.trim().to_owned());
    all
}

/// What a message shows of a field.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "signal,spearman_rho,p_value,n_pairs,note\n\
        hs_l2_diff_l10_rolling64,0.112,0.0,9,rolling mean (window=64)\n\
        hs_l2_diff,0.9,0.0,9,\n\
        hs_l2_diff_l2,-0.5,0.0,9,\"raw, not smoothed\"\n\
        hs_l2_diff_l3_ema09,,0.0,9,\n\
        kv_key_var_rolling64,0.38,0.0,9,\n";

    fn parse(text: &str) -> Result<Reference> {
        Reference::parse(text, Path::new("somewhere/table.csv"))
    }

    #[test]
    fn rows_of_the_step_norm_are_read_and_others_passed_over() {
        let reference = parse(TABLE).expect("a table");
        assert_eq!(reference.name, "table.csv");
        assert_eq!(reference.layers(Smoother::Mean), [(10, 0.112)]);
        assert_eq!(reference.layers(Smoother::Raw), [(2, -0.5)]);
        assert!(reference.layers(Smoother::Ema).is_empty() && reference.layers(Smoother::Z).is_empty());
    }

    #[test]
    fn our_own_names_are_read_alike() {
        let names = "signal,spearman_rho\nhs_l2_l10_mean64,0.112\nhs_l2_l02,-0.5\nhs_l2,0.9\n";
        let column = "layer,signal,spearman_rho\n10,hs_l2_mean64,0.112\n2,hs_l2,-0.5\n,hs_l2,0.9\n3,hs_cos,0.1\n";
        for text in [names, column] {
            let reference = parse(text).expect("a table");
            assert_eq!(reference.layers(Smoother::Mean), [(10, 0.112)]);
            assert_eq!(reference.layers(Smoother::Raw), [(2, -0.5)]);
            assert_eq!(reference.rho("hs_l2_diff_l10_rolling64"), Some(0.112), "under the published name");
            assert_eq!(reference.rho("hs_l2_diff_l2"), Some(-0.5));
        }
        assert!(parse("signal,spearman_rho\nhs_l2_l99,0.1\n").is_err());
    }

    #[test]
    fn layers_stand_at_their_relative_depth() {
        assert!((0..32).all(|layer| (place_of_layer(layer, 32) - layer as f64).abs() < 1e-12));
        assert!((place_of_layer(0, 4) - -0.4375).abs() < 1e-12 && (place_of_layer(31, 4) - 3.4375).abs() < 1e-12);
    }

    #[test]
    fn what_is_wrong_is_named_by_line_and_column() {
        let message = |text: &str| parse(text).expect_err("a bad table").to_string();
        assert_eq!(message(""), "somewhere/table.csv: line 1, column signal: expected a header, got an empty file");
        assert!(message("signal,rho\n").contains("line 1, column spearman_rho: expected a column of that name"));
        assert!(
            message(&TABLE.replace("0.112", "1.112"))
                .contains("line 2, column spearman_rho: expected a number in [-1, 1], got 1.112")
        );
        assert!(message(&TABLE.replace("0.112", "nan")).contains("got nan"));
        assert!(message(&TABLE.replace("l10_", "l32_")).contains("line 2, column signal"));
        assert!(message(&TABLE.replace("rolling64,0.112", "rolling32,0.112")).contains("hs_l2_diff_l10_rolling32"));
        assert!(
            message(&TABLE.replace("l10_rolling64", "l2")).contains("line 4, column signal: expected one row a signal")
        );
        assert!(
            message(&TABLE.replace(",-0.5,", ",")).contains("line 4, column signal: expected 5 fields, got 4 fields")
        );
        assert!(message("signal,spearman_rho\nkv,0.1\n").contains("expected rows named hs_l2_diff_lN or hs_l2_lN"));
        assert!(parse(&"x".repeat(500)).expect_err("no column").to_string().len() < 250);
    }
}
