//! Test: the correction for many layers finds planted bands and nothing else, in simulated studies.
//!
//! A study is 75 traces of 180 to 372 steps, one step standing for eight tokens of a series that is smoothed over 64; 32
//! layers that share half of their variance; labels in runs of two to four steps. Layers 7-13 and 18-25 carry the label with
//! the mean coefficients that were published for MATH-500 under the same smoother. Found is every layer whose `p_maxt` is at most
//! 5 %, with the sign of its distance from the null.

use std::ops::RangeInclusive;

use epikv_stats::resample::Draws;
use epikv_stats::surrogate::{Null, Statistics, Surrogates};
use rayon::prelude::*;

use crate::study::join::Labelled;
use crate::study::problems::Problems;
use crate::study::tested::{self, Tested};

const N_LAYERS: usize = 32;
const N_TRACES: usize = 75;
const N_SURROGATES: u64 = 199;
const BAND_A: RangeInclusive<usize> = 7..=13;
const BAND_B: RangeInclusive<usize> = 18..=25;

/// Published rho of the step norm, mean of 64, on MATH-500 (`math500_signal_ablation.csv`): the mean over layers 7-13 and over
/// layers 18-25.
const PUBLISHED_A: f64 = 0.077;
const PUBLISHED_B: f64 = -0.170;

/// Share of important tokens.
const BASE_RATE: f64 = 0.3;

fn uniform(draws: &mut Draws) -> f64 {
    draws.below(1 << 30) as f64 / f64::from(1 << 30)
}

/// Mean 0, variance 1, from three uniforms: ranks do not ask for more.
fn noise(draws: &mut Draws) -> f64 {
    ((0..3).map(|_| uniform(draws)).sum::<f64>() - 1.5) * 2.0
}

/// The shift between labels, in deviations, that gives a small rho: `rho = d sqrt(3 p (1-p) / pi)`.
fn shift(layer: usize) -> f64 {
    let rho = if BAND_A.contains(&layer) {
        PUBLISHED_A
    } else if BAND_B.contains(&layer) {
        PUBLISHED_B
    } else {
        0.0
    };
    rho / (3.0 * BASE_RATE * (1.0 - BASE_RATE) / std::f64::consts::PI).sqrt()
}

/// The columns of a study, `[layers][traces]`.
fn study(seed: u64, planted: bool) -> Vec<Vec<Labelled>> {
    let mut columns: Vec<Vec<Labelled>> = vec![Vec::new(); N_LAYERS];
    for trace in 0..N_TRACES as u64 {
        let mut draws = Draws::new(seed, trace);
        let n = 180 + 16 * draws.below(13);
        let mut labels: Vec<bool> = Vec::with_capacity(n);
        while labels.len() < n {
            let one = uniform(&mut draws) < BASE_RATE;
            let run = 2 + draws.below(3);
            labels.extend(std::iter::repeat_n(one, run));
        }
        // Lag-1 memory of a mean over eight steps, stationary from the start.
        let series = |draws: &mut Draws| -> Vec<f64> {
            let mut level = noise(draws);
            (0..n)
                .map(|_| {
                    level = 0.88 * level + 0.475 * noise(draws);
                    level
                })
                .collect()
        };
        let shared = series(&mut draws);
        for (layer, column) in columns.iter_mut().enumerate() {
            let own = series(&mut draws);
            let shift = if planted { shift(layer) } else { 0.0 };
            let values = shared.iter().zip(&own).zip(&labels).map(|((shared, own), &one)| {
                let value = (shared + own) / 2.0_f64.sqrt() + if one { shift } else { 0.0 };
                (Some(value as f32), one)
            });
            column.push(Labelled::new(values));
        }
    }
    columns
}

/// Layers that are found, with their signs.
fn found(columns: &[Vec<Labelled>], seed: u64) -> Vec<(usize, bool)> {
    let problems = Problems::each(N_TRACES);
    let prepare =
        |traces: &Vec<Labelled>| tested::prepare(&traces.iter().collect::<Vec<_>>(), &problems).expect("finite values");
    let prepared: Vec<Surrogates> = columns.iter().map(prepare).collect();
    // All layers have the same labels.
    let mut null = vec![Vec::new(); N_LAYERS];
    for replicate in 0..N_SURROGATES {
        let labels = prepared[0].labels(Null::CrossTrace, seed, replicate);
        for (null, layer) in null.iter_mut().zip(&prepared) {
            null.push(layer.under(&labels));
        }
    }
    let within = |(layer, null): (&Surrogates, &Vec<Statistics>)| {
        let [_, within] = tested::beside(layer.observed(), null, &[]);
        within
    };
    let mut all: Vec<Tested> = prepared.iter().zip(&null).map(within).collect();
    tested::adjust(&mut all.iter_mut().collect::<Vec<_>>());
    let significant = all.iter().enumerate().filter(|(_, t)| t.p_maxt <= Some(0.05));
    significant.filter_map(|(layer, t)| Some((layer, t.z_null? > 0.0))).collect()
}

/// Shares of studies: exactly the planted layers with their signs; any other layer; any layer where nothing was planted.
fn shares(n_studies: u64) -> [f64; 3] {
    let bands: Vec<(usize, bool)> = BAND_A.map(|l| (l, true)).chain(BAND_B.map(|l| (l, false))).collect();
    let of_study = |seed: u64| {
        let layers = found(&study(seed, true), seed);
        let other = layers.iter().any(|layer| !bands.contains(layer));
        [layers == bands, other, !found(&study(1_000_000 + seed, false), seed).is_empty()]
    };
    let studies: Vec<[bool; 3]> = (0..n_studies).into_par_iter().map(of_study).collect();
    [0, 1, 2].map(|i| studies.iter().filter(|study| study[i]).count() as f64 / n_studies as f64)
}

#[test]
fn planted_bands_are_found_in_a_few_studies() {
    let [exact, other, none] = shares(24);
    assert!(exact >= 0.8 && other <= 0.2 && none <= 0.2, "{exact} {other} {none}");
}

/// `cargo test --release --workspace --lib -- --ignored --nocapture planted_bands`: minutes of two cores.
#[test]
#[ignore = "1,000 studies take minutes"]
#[expect(clippy::print_stdout, reason = "the rates are the result")]
fn planted_bands_are_found_in_a_thousand_studies() {
    let [exact, other, none] = shares(1000);
    println!(
        "exactly the planted layers {:.1} %, any other layer {:.1} %, any layer where nothing was planted {:.1} %",
        100.0 * exact,
        100.0 * other,
        100.0 * none
    );
    assert!(exact >= 0.935, "{exact}");
    assert!(other <= 0.065 && none <= 0.065, "{other} {none}");
}
