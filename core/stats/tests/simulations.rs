//! Simulated traces with a known truth: what each correction must remove, and what it must not invent.

use epikv_stats::circular_shift::circular_shift_test;
use epikv_stats::partial::partial_spearman;
use epikv_stats::pool::{PoolWeight, pool_fisher};
use epikv_stats::resample::Draws;
use epikv_stats::rolling::rolling;
use epikv_stats::{BinaryRanks, Confidence, RollingSpec, spearman};

const TRACES: usize = 100;
const TOKENS: usize = 400;

/// A uniform number in [0, 1).
fn uniform(draws: &mut Draws) -> f64 {
    draws.below(1 << 30) as f64 / f64::from(1 << 30)
}

/// Nearly normal, mean 0 and variance 1: the sum of twelve uniforms.
fn noise(draws: &mut Draws) -> f64 {
    (0..12).map(|_| uniform(draws)).sum::<f64>() - 6.0
}

fn mean_rho(rhos: &[f64]) -> f64 {
    let lengths = vec![TOKENS as u64; rhos.len()];
    pool_fisher(rhos, &lengths, PoolWeight::Equal, Confidence::P95).expect("traces").rho
}

fn as_numbers(labels: &[bool]) -> Vec<f64> {
    labels.iter().map(|&l| f64::from(u8::from(l))).collect()
}

/// Signal and label both rise along the trace and are otherwise unrelated.
#[test]
fn a_pure_trend_falls_under_both_corrections() {
    let position: Vec<f64> = (0..TOKENS).map(|t| t as f64).collect();
    let (mut raw, mut partial, mut z) = (Vec::new(), Vec::new(), Vec::new());
    for trace in 0..TRACES {
        let mut draws = Draws::new(11, trace as u64);
        let share = |t: usize| t as f64 / TOKENS as f64;
        let signal: Vec<f64> = (0..TOKENS).map(|t| 2.0 * share(t) + noise(&mut draws)).collect();
        let labels: Vec<bool> = (0..TOKENS).map(|t| uniform(&mut draws) < 0.1 + 0.4 * share(t)).collect();
        let label = as_numbers(&labels);
        let spec = RollingSpec::new(64).expect("not empty");
        let scored: Vec<f64> = rolling(&signal, spec).into_iter().flatten().map(|p| p.z).collect();
        raw.extend(spearman(&signal, &label));
        partial.extend(partial_spearman(&signal, &label, &[&position]).map(|p| p.r));
        z.extend(spearman(&scored, &label));
    }
    assert!(mean_rho(&raw) > 0.1, "{}", mean_rho(&raw));
    assert!(mean_rho(&partial).abs() < 0.03, "{}", mean_rho(&partial));
    assert!(mean_rho(&z).abs() < 0.03, "{}", mean_rho(&z));
}

/// A trace effect on signal level and label rate, and no relation inside a trace.
#[test]
fn pooled_rho_mixes_in_the_level_of_traces() {
    let (mut signals, mut labels, mut within) = (Vec::new(), Vec::new(), Vec::new());
    for trace in 0..TRACES {
        let mut draws = Draws::new(12, trace as u64);
        let effect = uniform(&mut draws);
        let signal: Vec<f64> = (0..TOKENS).map(|_| 3.0 * effect + noise(&mut draws)).collect();
        let label: Vec<bool> = (0..TOKENS).map(|_| uniform(&mut draws) < 0.1 + 0.6 * effect).collect();
        within.extend(BinaryRanks::from_f64(&signal, &label).and_then(|r| r.rho()));
        signals.extend(signal);
        labels.extend(label);
    }
    let pooled = BinaryRanks::from_f64(&signals, &labels).and_then(|r| r.rho()).expect("defined");
    assert!(pooled > 0.15, "{pooled}");
    assert!(mean_rho(&within).abs() < 0.02, "{}", mean_rho(&within));
}

/// Long memory in the signal, runs in the label, no relation: the shift test keeps its level, a shuffle doesn't.
#[test]
fn shifts_keep_their_level_where_a_shuffle_fails() {
    let trials = 200;
    let (mut by_shift, mut by_shuffle) = (0, 0);
    for trial in 0..trials {
        let mut draws = Draws::new(13, trial);
        let mut level = 0.0;
        let signal: Vec<f64> = (0..512)
            .map(|_| {
                level = 0.97 * level + noise(&mut draws);
                level
            })
            .collect();
        let blocks: Vec<bool> = (0..16).map(|_| uniform(&mut draws) < 0.4).collect();
        let mut labels: Vec<bool> = (0..512).map(|t| blocks[t / 32]).collect();
        let Some(test) = circular_shift_test(&signal, &labels) else {
            continue;
        };
        by_shift += usize::from(test.p <= 0.05);
        let as_extreme = (0..99)
            .filter(|_| {
                draws.shuffle(&mut labels);
                BinaryRanks::from_f64(&signal, &labels).and_then(|r| r.rho()).is_some_and(|r| r.abs() >= test.rho.abs())
            })
            .count();
        by_shuffle += usize::from(as_extreme < 5);
    }
    assert!(by_shift <= 22, "{by_shift} of {trials} rejected by shifts");
    assert!(by_shuffle >= 100, "{by_shuffle} of {trials} rejected by shuffles");
}
