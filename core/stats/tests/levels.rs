//! How often tests reject without any relation, and how often intervals hold the truth: 1,000 simulated studies each.
//!
//! Seeds are fixed, so the counts are too; they are printed with `--nocapture`.

#![expect(clippy::print_stdout, reason = "the rates are the result")]

use std::collections::BTreeMap;

use epikv_stats::bootstrap::bootstrap_interval;
use epikv_stats::moments::standard_error;
use epikv_stats::pool::clipped_z;
use epikv_stats::resample::{Draws, bootstrap, jackknife};
use epikv_stats::surrogate::{Null, Surrogate, Surrogates};
use epikv_stats::{BinaryRanks, Confidence, PooledPairs, RankScratch};
use rayon::prelude::*;

const STUDIES: u64 = 1000;

/// A uniform number in [0, 1).
fn uniform(draws: &mut Draws) -> f64 {
    draws.below(1 << 30) as f64 / f64::from(1 << 30)
}

/// Nearly normal, mean 0 and variance 1: the sum of twelve uniforms.
fn noise(draws: &mut Draws) -> f64 {
    (0..12).map(|_| uniform(draws)).sum::<f64>() - 6.0
}

/// What signal and label share without being related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Stationary,
    Trend,
    Bowl,
}

impl Shape {
    /// In [0, 1] at relative position `u`.
    fn at(self, u: f64) -> f64 {
        match self {
            Self::Stationary => 0.5,
            Self::Trend => u,
            Self::Bowl => (2.0 * u - 1.0).powi(2),
        }
    }
}

type Columns = Vec<(Vec<f32>, Vec<bool>)>;

/// Traces whose signal (long memory) and labels (runs of 16) follow the same profile over positions, and nothing else.
fn unrelated(shape: Shape, study: u64, n_traces: usize) -> Columns {
    (0..n_traces as u64)
        .map(|trace| {
            let mut draws = Draws::new(1000 + study, trace);
            let n = 160 + 16 * draws.below(13);
            let mut level = 0.0;
            let signal = (0..n)
                .map(|t| {
                    level = 0.9 * level + 0.44 * noise(&mut draws);
                    (level + 3.0 * shape.at(t as f64 / n as f64)) as f32
                })
                .collect();
            let mut one = false;
            let labels = (0..n).map(|t| {
                if t % 16 == 0 {
                    one = uniform(&mut draws) < 0.1 + 0.5 * shape.at(t as f64 / n as f64);
                }
                one
            });
            (signal, labels.collect())
        })
        .collect()
}

fn borrowed(traces: &Columns) -> Vec<(&[f32], &[bool])> {
    traces.iter().map(|(x, y)| (&x[..], &y[..])).collect()
}

/// Whether within and pooled rho are called significant at 5 %.
fn rejects(traces: &Columns, null: Null, seed: u64) -> [bool; 2] {
    significant(&Surrogates::new(&borrowed(traces)).expect("no NaN"), null, seed)
}

fn significant(prepared: &Surrogates, null: Null, seed: u64) -> [bool; 2] {
    let surrogates: Vec<_> = (0..199).map(|b| prepared.replicate(null, seed, b)).collect();
    let observed = prepared.observed();
    let p = |observed: Option<f64>, null: Vec<Option<f64>>| observed.and_then(|t| Surrogate::of(t, null)).map(|s| s.p);
    [
        p(observed.within, surrogates.iter().map(|s| s.within).collect()),
        p(observed.pooled, surrogates.iter().map(|s| s.pooled).collect()),
    ]
    .map(|p| p.is_some_and(|p| p <= 0.05))
}

#[test]
fn other_traces_keep_the_level_where_shifts_reject_trends() {
    let mut rates: BTreeMap<(Shape, bool), [f64; 2]> = BTreeMap::new();
    for shape in [Shape::Stationary, Shape::Trend, Shape::Bowl] {
        for (null, cross) in [(Null::CrossTrace, true), (Null::CircularShift, false)] {
            let found: Vec<[bool; 2]> =
                (0..STUDIES).into_par_iter().map(|study| rejects(&unrelated(shape, study, 14), null, study)).collect();
            let rate = [0, 1].map(|i| found.iter().filter(|f| f[i]).count() as f64 / STUDIES as f64);
            println!("{shape:?}, {null:?}: {:.1} % within, {:.1} % pooled", 100.0 * rate[0], 100.0 * rate[1]);
            rates.insert((shape, cross), rate);
        }
    }
    for shape in [Shape::Stationary, Shape::Trend, Shape::Bowl] {
        assert!(rates[&(shape, true)].iter().all(|&rate| rate <= 0.07), "{shape:?}: {:?}", rates[&(shape, true)]);
    }
    assert!(rates[&(Shape::Stationary, false)].iter().all(|&rate| rate <= 0.07));
    for shape in [Shape::Trend, Shape::Bowl] {
        assert!(rates[&(shape, false)].iter().all(|&rate| rate >= 0.92), "{shape:?}: {:?}", rates[&(shape, false)]);
    }
}

/// Problems of `n_samples` near-copies: signal and labels of a problem are shared up to a little noise and an occasional
/// window.
fn near_copies(shape: Shape, study: u64, n_problems: usize, n_samples: usize) -> (Columns, Vec<usize>) {
    let mut columns = Columns::new();
    for (problem, (signal, labels)) in unrelated(shape, 40_000_000 + study, n_problems).into_iter().enumerate() {
        for sample in 0..n_samples as u64 {
            let mut draws = Draws::new(90_000_000 + study, problem as u64 * 1000 + sample);
            let signal = signal.iter().map(|x| x + 0.2 * noise(&mut draws) as f32).collect();
            let mut flip = false;
            let labels = labels.iter().enumerate().map(|(t, one)| {
                if t % 16 == 0 {
                    flip = uniform(&mut draws) < 0.05;
                }
                one ^ flip
            });
            columns.push((signal, labels.collect()));
        }
    }
    let problem = (0..columns.len()).map(|trace| trace / n_samples).collect();
    (columns, problem)
}

/// Shares of studies of 10 problems by 8 near-copies that the exchange of labels rejects at 5 %, `[within, pooled]`: with
/// the problem and with the trace as the unit.
fn rates_of_copies(shape: Shape, n_studies: u64) -> [[f64; 2]; 2] {
    let of_study = |study: u64| {
        let (traces, problem) = near_copies(shape, study, 10, 8);
        let by_problem = Surrogates::of_problems(&borrowed(&traces), &problem).expect("no NaN");
        [significant(&by_problem, Null::CrossTrace, study), rejects(&traces, Null::CrossTrace, study)]
    };
    let found: Vec<[[bool; 2]; 2]> = (0..n_studies).into_par_iter().map(of_study).collect();
    [0, 1].map(|unit| [0, 1].map(|scope| found.iter().filter(|f| f[unit][scope]).count() as f64 / n_studies as f64))
}

#[test]
fn near_copies_of_a_problem_keep_the_level_in_some_studies() {
    let [by_problem, by_trace] = rates_of_copies(Shape::Trend, 150);
    // 5 % of 150 is 7.5; above 16 would be a chance of 3 in 1,000.
    assert!(by_problem.iter().all(|&rate| rate <= 16.0 / 150.0), "{by_problem:?}");
    assert!(by_trace.iter().all(|&rate| rate >= 0.25), "the trace as the unit: {by_trace:?}");
}

/// `cargo test --release --workspace --test levels -- --ignored --nocapture near_copies`: some minutes of two cores.
#[test]
#[ignore = "6,000 studies take minutes"]
fn near_copies_of_a_problem_keep_the_level() {
    for shape in [Shape::Stationary, Shape::Trend, Shape::Bowl] {
        let [by_problem, by_trace] = rates_of_copies(shape, 2000);
        let text = |rate: [f64; 2]| format!("{:.1} % within, {:.1} % pooled", 100.0 * rate[0], 100.0 * rate[1]);
        println!("{shape:?}, 10 problems x 8 near-copies: problems {}; traces {}", text(by_problem), text(by_trace));
        assert!(by_problem.iter().all(|&rate| rate <= 0.07), "{shape:?}: {by_problem:?}");
    }
}

#[test]
fn student_and_the_bootstrap_hold_the_mean_over_problems() {
    // Ten problems of eight samples: the relation differs from problem to problem, a sample adds a little.
    for n in [6, 10, 20, 40] {
        let held: Vec<[bool; 2]> = (0..STUDIES)
            .into_par_iter()
            .map(|study| {
                let mut draws = Draws::new(700_000 + study, n as u64);
                let means: Vec<f64> = (0..n)
                    .map(|_| {
                        let own = 0.2 + 0.15 * noise(&mut draws);
                        (0..8).map(|_| own + 0.05 * noise(&mut draws)).sum::<f64>() / 8.0
                    })
                    .collect();
                let mean = |counts: &[u32]| epikv_stats::moments::mean_of_counts(&means, counts);
                let (middle, se) = (mean(&vec![1; n]).expect("n"), standard_error(&means).expect("n > 1"));
                let half = se * Confidence::P95.t(n as f64 - 1.0).expect("n > 1");
                [(middle - 0.2).abs() <= half, holds(0.2, n, study, mean)]
            })
            .collect();
        let rate = [0, 1].map(|i| held.iter().filter(|h| h[i]).count() as f64 / STUDIES as f64);
        println!(
            "{n} problems x 8: Student's t holds the mean in {:.1} %, BCa in {:.1} %",
            100.0 * rate[0],
            100.0 * rate[1]
        );
        assert!(rate[0] >= 0.93, "Student's t over {n} problems: {}", rate[0]);
    }
}

/// Traces with a relation whose strength differs from trace to trace.
fn related(study: u64, n_traces: usize) -> Columns {
    (0..n_traces as u64)
        .map(|trace| {
            let mut draws = Draws::new(500_000 + study, trace);
            let strength = 0.5 + 0.3 * noise(&mut draws);
            let mut one = false;
            let tokens = (0..96).map(|t| {
                if t % 16 == 0 {
                    one = uniform(&mut draws) < 0.4;
                }
                ((strength * f64::from(u8::from(one)) + noise(&mut draws)) as f32, one)
            });
            tokens.unzip()
        })
        .collect()
}

fn within(traces: &Columns) -> Vec<f64> {
    let mut scratch = RankScratch::default();
    let rho = |(x, y): &(Vec<f32>, Vec<bool>)| BinaryRanks::from_f32(x, y, &mut scratch)?.rho();
    traces.iter().filter_map(rho).map(|rho| clipped_z(rho).0).collect()
}

#[test]
fn the_trace_bootstrap_holds_the_truth() {
    // The truth: one large study.
    let large = related(u64::MAX / 2, 20_000);
    let z = within(&large);
    let true_z = z.iter().sum::<f64>() / z.len() as f64;
    let all: (Vec<f32>, Vec<bool>) =
        (large.iter().flat_map(|t| t.0.clone()).collect(), large.iter().flat_map(|t| t.1.clone()).collect());
    let ranks = BinaryRanks::from_f32(&all.0, &all.1, &mut RankScratch::default());
    let true_rho = ranks.and_then(|r| r.rho()).expect("defined");
    for n in [14, 30, 75] {
        let held: Vec<[bool; 2]> = (0..STUDIES)
            .into_par_iter()
            .map(|study| {
                let traces = related(study, n);
                let z = within(&traces);
                let mean_z = |counts: &[u32]| {
                    let (sum, n) = z.iter().zip(counts).fold((0.0, 0), |(s, n), (z, &c)| (s + z * f64::from(c), n + c));
                    Some(sum / f64::from(n))
                };
                let pairs = PooledPairs::new(&borrowed(&traces)).expect("no NaN");
                let rho = |counts: &[u32]| pairs.with_multiplicity(counts).rho();
                [holds(true_z, z.len(), study, mean_z), holds(true_rho, n, study, rho)]
            })
            .collect();
        let rate = [0, 1].map(|i| held.iter().filter(|h| h[i]).count() as f64 / STUDIES as f64);
        println!(
            "{n} traces: BCa holds within rho in {:.1} %, pooled rho in {:.1} %",
            100.0 * rate[0],
            100.0 * rate[1]
        );
        if n == 75 {
            assert!(rate.iter().all(|&rate| rate >= 0.92), "{rate:?}");
        }
    }
}

/// Whether the 95 % interval of a statistic over `n` traces holds `truth`.
fn holds(truth: f64, n: usize, seed: u64, statistic: impl Fn(&[u32]) -> Option<f64> + Sync) -> bool {
    let observed = statistic(&vec![1; n]).expect("defined");
    let replicates: Vec<f64> = bootstrap(seed, 400, n, &statistic).into_iter().flatten().collect();
    let left_out: Vec<f64> = jackknife(n, &statistic).into_iter().flatten().collect();
    let interval = bootstrap_interval(observed, &replicates, &left_out, Confidence::P95);
    interval.and_then(|i| i.bca).is_some_and(|(lo, hi)| lo <= truth && truth <= hi)
}
