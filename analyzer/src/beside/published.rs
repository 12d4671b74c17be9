//! Tests of the published claims on a published table, with the same questions as for our own coefficients.
//!
//! | claim | holds if |
//! | --- | --- |
//! | two bands | rho of the smoothed `hs_l2` is positive at all of layers 7-13 and negative at all of 18-25 |
//! | smoothing helps | the rolling mean has the larger \|rho\| for every signal that the table has both ways |
//! | length beats angle | the raw step norm has the larger \|rho\| than the cosine distance at every layer |
//! | attention is weakest | raw accumulated attention has the smaller \|rho\| than the raw step norm at every layer |
//! | rotation changes nothing | rho before and after rotation differ by less than 0.001 for every signal of keys |
//!
//! Like is compared with like: a raw signal with raw ones. No interval is given, since a table of coefficients has none.

use epikv_stats::moments::mean;

use crate::beside::reference::Reference;
use crate::study::bands::Band;

/// A claim on a published table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The claim, in our words.
    pub claim: &'static str,
    /// Whether the table bears it out.
    pub holds: bool,
    /// The counts that decide it.
    pub figures: String,
}

/// Largest difference that rotation may make.
const ROTATION: f64 = 0.001;

/// Layers of the reference model.
const N_LAYERS: usize = epikv_signals::REFERENCE_LAYERS;

/// Checks the claims that the rows of a table can decide.
pub fn check(reference: &Reference) -> Vec<Checked> {
    [bands, smoothing, cosine, attention, rotation].into_iter().filter_map(|claim| claim(reference)).collect()
}

/// The lines of the page; empty if the table decides nothing.
pub fn markdown(reference: &Reference) -> String {
    let checked = check(reference);
    if checked.is_empty() {
        return String::new();
    }
    let line = |c: &Checked| {
        format!("- {}: {} ({})", c.claim, if c.holds { "borne out" } else { "**contradicted**" }, c.figures)
    };
    let lines: Vec<String> = checked.iter().map(line).collect();
    format!("## Claims on {}\n\n{}", reference.name, lines.join("\n"))
}

fn bands(reference: &Reference) -> Option<Checked> {
    let mut holds = true;
    let mut figures = Vec::new();
    for (band, sign) in Band::both(N_LAYERS).into_iter().zip([1.0, -1.0]) {
        let of = |layer: usize| reference.rho(&format!("hs_l2_diff_l{layer}_rolling64"));
        let rho = band.layers.clone().map(of).collect::<Option<Vec<f64>>>()?;
        let right = rho.iter().filter(|rho| **rho * sign > 0.0).count();
        holds &= right == rho.len();
        let mean = mean(&rho)?;
        figures.push(format!("band {}: {right} of {} layers, mean {mean:+.3}", band.name, rho.len()));
    }
    Some(Checked { claim: "positive in band A, negative in band B", holds, figures: figures.join("; ") })
}

fn smoothing(reference: &Reference) -> Option<Checked> {
    let pairs: Vec<(f64, f64)> = reference
        .names()
        .filter_map(|name| Some((reference.rho(name)?, reference.rho(&format!("{name}_rolling64"))?)))
        .collect();
    let larger = pairs.iter().filter(|(raw, smoothed)| smoothed.abs() > raw.abs()).count();
    (!pairs.is_empty()).then(|| Checked {
        claim: "the rolling mean always has the larger |rho|",
        holds: larger == pairs.len(),
        figures: format!("{larger} of {} signals", pairs.len()),
    })
}

fn cosine(reference: &Reference) -> Option<Checked> {
    let of = |layer: usize| {
        let cosine = reference.rho(&format!("hs_cos_dist_l{layer}"))?;
        Some((reference.rho(&format!("hs_l2_diff_l{layer}"))?, cosine))
    };
    let pairs = (0..N_LAYERS).map(of).collect::<Option<Vec<_>>>()?;
    let stronger = pairs.iter().filter(|(l2, cosine)| cosine.abs() > l2.abs()).count();
    Some(Checked {
        claim: "the step norm beats the cosine distance at every layer",
        holds: stronger == 0,
        figures: format!("the cosine is stronger at {stronger} of {N_LAYERS} layers"),
    })
}

fn attention(reference: &Reference) -> Option<Checked> {
    let h2o = reference.rho("h2o_attn")?.abs();
    let layers =
        (0..N_LAYERS).map(|layer| reference.rho(&format!("hs_l2_diff_l{layer}"))).collect::<Option<Vec<_>>>()?;
    let weaker = layers.iter().filter(|rho| rho.abs() < h2o).count();
    Some(Checked {
        claim: "accumulated attention is the weakest signal, raw against raw",
        holds: weaker == 0,
        figures: format!("weaker are {weaker} of {N_LAYERS} layers of the step norm"),
    })
}

fn rotation(reference: &Reference) -> Option<Checked> {
    let gap = |name: &str| {
        let (base, suffix) = name.split_once("_preRoPE")?;
        Some((reference.rho(name)? - reference.rho(&format!("{base}{suffix}"))?).abs())
    };
    let gap = reference.names().filter_map(gap).reduce(f64::max)?;
    Some(Checked {
        claim: "keys before and after rotation say the same",
        holds: gap < ROTATION,
        figures: format!("rho differs by {gap:.4} at most"),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Counts that a reading of the published tables by hand gave; the tables lie outside the repository.
    #[test]
    fn the_published_tables_contradict_what_was_made_of_them() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/reference/epikv");
        for (file, want) in [
            (
                "math500_signal_ablation.csv",
                vec![
                    (true, "band A: 7 of 7 layers, mean +0.077; band B: 8 of 8 layers, mean -0.200"),
                    (false, "36 of 38 signals"),
                    (false, "the cosine is stronger at 20 of 32 layers"),
                    (true, "rho differs by 0.0003 at most"),
                ],
            ),
            (
                "gsm8k_eager_signal_ablation.csv",
                vec![
                    (false, "band A: 3 of 7 layers, mean -0.051; band B: 8 of 8 layers, mean -0.301"),
                    (false, "37 of 38 signals"),
                    (false, "the cosine is stronger at 9 of 32 layers"),
                    (false, "weaker are 15 of 32 layers of the step norm"),
                    (true, "rho differs by 0.0001 at most"),
                ],
            ),
        ] {
            let path = folder.join(file);
            if !path.exists() {
                std::io::Write::write_all(&mut std::io::stderr(), b"skipped: the published tables are not there\n")
                    .ok();
                return;
            }
            let found = check(&Reference::read(&path).expect("a published table"));
            let found: Vec<(bool, &str)> = found.iter().map(|c| (c.holds, c.figures.as_str())).collect();
            assert_eq!(found, want, "{file}");
        }
    }
}
