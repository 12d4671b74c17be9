//! Tests of rho over many traces with labels that do not depend on the signal: labels of other traces, or shifted
//! labels.
//!
//! Tokens are not exchangeable: labels come in runs, signals have long memory, and both may follow the position. Traces of
//! one problem are not exchangeable with others either: samples of a problem can be near-copies. So the unit is the problem.
//! Each replicate gives every trace of `n` tokens other labels and computes the statistics again:
//!
//! | null | labels of the `k`-th trace of problem `i` | keeps | breaks down on |
//! | --- | --- | --- | --- |
//! | [`Null::CrossTrace`] | those of the `k`-th trace of problem `j = pi(i)` (counted around where it has fewer), token `t` getting that at `floor((t + 1/2) n_j / n)` | runs, what the samples of a problem share, and every profile over positions that problems share | few problems: `1/k!` is the least p |
//! | [`Null::CircularShift`] | its own, moved around the end by a random non-zero offset, which all traces of the problem share in proportion to their lengths | runs and base rate | trends, which a shift wraps around |
//!
//! `pi` is a random permutation of the problems, so that every problem's labels are used once, as they are in the data, and
//! the test is exact if problems are exchangeable and have equally many traces. It may leave a problem in its place, as a
//! permutation test must: donors that are never the trace itself reject 7.7 % at a level of 5 %.
//!
//! Two statistics, in one pass:
//!
//! ```text
//! within = mean over problems of the mean over their traces with a coefficient of atanh(rho)
//! pooled = rho over the tokens of all traces at once
//! ```
//!
//! Signals are ranked once. Labels in `r` runs cost `r` differences of prefix sums, so a replicate takes `O(sum r)` and not
//! `O(n)`. Which labels or offset a trace gets depends on (seed, replicate, problem) alone, so that all columns over the same
//! traces move alike: that is what [`crate::permutation::max_t_p`] needs.
//!
//! # References
//!
//! Lancaster et al. 2018, *Physics Reports* 748:1 (surrogates from other trials); Harris 2020, arXiv 2012.06862 (shifts).

use crate::correlation::rank_sum::BinaryRanks;
use crate::intervals::pool::clipped_z;
use crate::ranks::rank::Midranks;
use crate::resampling::permutation::{permutation_p, random_shift};
use crate::resampling::resample::Draws;

/// Where the labels of a replicate come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Null {
    /// The problems exchange their labels at matched relative position.
    CrossTrace,
    /// The same trace, around its end.
    CircularShift,
}

/// Both statistics; `None` where undefined.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Mean over problems of the mean of `atanh(rho)` over their traces that have a coefficient.
    pub within: Option<f64>,
    /// Rho over all tokens.
    pub pooled: Option<f64>,
}

/// What surrogates say of one statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Surrogate {
    /// Two-sided p-value, never 0.
    pub p: f64,
    /// Mean of the statistic over the surrogates: what position and base rate give without any relation.
    pub mean: f64,
    /// Its deviation over the surrogates (unbiased): the spread of rho under the null, which smoothing raises.
    pub sd: Option<f64>,
    /// `(observed - mean) / sd`.
    pub z: Option<f64>,
}

impl Surrogate {
    /// Compares an observed statistic with surrogates of it. Undefined ones are left out.
    ///
    /// The p-value is that of the distance from the surrogates' mean. Undefined (`None`) without surrogates.
    pub fn of(observed: f64, null: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let null: Vec<f64> = null.into_iter().flatten().collect();
        let mean = crate::moments::mean(&null)?;
        let centred: Vec<f64> = null.iter().map(|t| t - mean).collect();
        let p = permutation_p(observed - mean, &centred)?;
        let sd = crate::moments::sample_sd(&null).filter(|&sd| sd > 0.0);
        Some(Self { p, mean, sd, z: sd.map(|sd| (observed - mean) / sd) })
    }
}

/// Labels of all traces of a replicate, as half-open runs of important tokens; none where a trace gets none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels(Option<Vec<Vec<(usize, usize)>>>);

/// Signals and labels of several traces, ready for any number of surrogates.
#[derive(Debug, Clone)]
pub struct Surrogates {
    traces: Vec<Trace>,
    /// The traces of each problem.
    problems: Vec<Vec<usize>>,
    /// Tokens and tie term of all traces together.
    n_tokens: u64,
    tie_sum: u128,
}

#[derive(Debug, Clone)]
struct Trace {
    n: usize,
    /// Half-open runs of important tokens.
    runs: Vec<(usize, usize)>,
    own: Ranks,
    among_all: Ranks,
}

/// Prefix sums of doubled midranks, `[n + 1]`, with the tie term of the column they were ranked in.
#[derive(Debug, Clone)]
struct Ranks {
    prefix: Vec<u64>,
    tie_sum: u128,
}

impl Ranks {
    fn new(twice: &[u64], tie_sum: u128) -> Self {
        let sums = twice.iter().scan(0, |sum, &r| {
            *sum += r;
            Some(*sum)
        });
        Self { prefix: std::iter::once(0).chain(sums).collect(), tie_sum }
    }

    fn sum(&self, runs: &[(usize, usize)]) -> u128 {
        runs.iter().map(|&(from, to)| u128::from(self.prefix[to] - self.prefix[from])).sum()
    }
}

impl Surrogates {
    /// Ranks the signals of traces, each within its trace and among all, where every trace is a problem of its own. Cost
    /// `O(n)`.
    ///
    /// Undefined (`None`) when a signal holds a `NaN`.
    ///
    /// # Panics
    ///
    /// If a trace has not one label a token.
    pub fn new(traces: &[(&[f32], &[bool])]) -> Option<Self> {
        Self::of_problems(traces, &(0..traces.len()).collect::<Vec<_>>())
    }

    /// The same where trace `i` belongs to problem `problem[i]`, numbered from 0 in any order.
    ///
    /// Undefined (`None`) when a signal holds a `NaN`.
    ///
    /// # Panics
    ///
    /// If a trace has not one label a token, or `problem` not one entry a trace.
    pub fn of_problems(traces: &[(&[f32], &[bool])], problem: &[usize]) -> Option<Self> {
        assert_eq!(problem.len(), traces.len(), "one problem a trace");
        let mut problems = vec![Vec::new(); problem.iter().max().map_or(0, |last| last + 1)];
        for (trace, &problem) in problem.iter().enumerate() {
            problems[problem].push(trace);
        }
        problems.retain(|traces| !traces.is_empty());
        let all = traces.iter().map(|(signal, _)| *signal).collect::<Vec<_>>().concat();
        let pooled = Midranks::from_f32(&all)?;
        let mut first = 0;
        let rank = |(signal, important): &(&[f32], &[bool])| {
            assert_eq!(signal.len(), important.len(), "one label a token");
            let n = signal.len();
            let own = Midranks::from_f32(signal)?;
            let among_all = Ranks::new(&pooled.twice()[first..first + n], pooled.tie_sum());
            first += n;
            Some(Trace { n, runs: runs(important), own: Ranks::new(own.twice(), own.tie_sum()), among_all })
        };
        let traces = traces.iter().map(rank).collect::<Option<Vec<_>>>()?;
        Some(Self { traces, problems, n_tokens: all.len() as u64, tie_sum: pooled.tie_sum() })
    }

    /// The statistics of the labels as they are.
    pub fn observed(&self) -> Statistics {
        self.under(&Labels(Some(self.traces.iter().map(|trace| trace.runs.clone()).collect())))
    }

    /// The statistics of one replicate; undefined under [`Null::CrossTrace`] for a single problem.
    pub fn replicate(&self, null: Null, seed: u64, replicate: u64) -> Statistics {
        self.under(&self.labels(null, seed, replicate))
    }

    /// The labels of one replicate: the same for every column over the same labelled tokens.
    pub fn labels(&self, null: Null, seed: u64, replicate: u64) -> Labels {
        let drawn = match null {
            Null::CrossTrace => self.exchanged(seed, replicate),
            Null::CircularShift => self.shifted(seed, replicate),
        };
        Labels(drawn)
    }

    /// The labels of another problem for each.
    fn exchanged(&self, seed: u64, replicate: u64) -> Option<Vec<Vec<(usize, usize)>>> {
        if self.problems.len() < 2 {
            return None;
        }
        let mut labels = vec![Vec::new(); self.traces.len()];
        for (own, donor) in self.problems.iter().zip(exchanged(seed, replicate, self.problems.len())) {
            for (&trace, &donor) in own.iter().zip(self.problems[donor].iter().cycle()) {
                let donor = &self.traces[donor];
                if donor.n == 0 {
                    return None;
                }
                labels[trace] = stretched(&donor.runs, donor.n, self.traces[trace].n);
            }
        }
        Some(labels)
    }

    /// The labels of each trace around its end.
    fn shifted(&self, seed: u64, replicate: u64) -> Option<Vec<Vec<(usize, usize)>>> {
        let mut labels = vec![Vec::new(); self.traces.len()];
        for (problem, own) in (0..).zip(&self.problems) {
            let first = self.traces[own[0]].n;
            let shift = random_shift(seed, replicate, problem, first)?;
            for &trace in own {
                let Trace { n, runs, .. } = &self.traces[trace];
                let last = n.checked_sub(1).filter(|&last| last > 0)?;
                labels[trace] = shifted(runs, *n, ((2 * shift * n + first) / (2 * first)).clamp(1, last));
            }
        }
        Some(labels)
    }

    /// The statistics under given labels.
    ///
    /// # Panics
    ///
    /// If they are labels of other traces.
    pub fn under(&self, labels: &Labels) -> Statistics {
        let Some(labels) = &labels.0 else { return Statistics::default() };
        assert_eq!(labels.len(), self.traces.len(), "labels of every trace");
        let (mut sum_z, mut n_z) = (0.0, 0_u32);
        let (mut n_pos, mut twice_rank_sum_pos) = (0, 0);
        for problem in &self.problems {
            let (mut sum_own, mut n_own) = (0.0, 0_u32);
            for &at in problem {
                let (trace, runs) = (&self.traces[at], &labels[at]);
                let own_pos = runs.iter().map(|&(from, to)| (to - from) as u64).sum();
                let own = BinaryRanks {
                    n: trace.n as u64,
                    n_pos: own_pos,
                    twice_rank_sum_pos: trace.own.sum(runs),
                    tie_sum: trace.own.tie_sum,
                };
                if let Some(rho) = own.rho() {
                    sum_own += clipped_z(rho).0;
                    n_own += 1;
                }
                n_pos += own_pos;
                twice_rank_sum_pos += trace.among_all.sum(runs);
            }
            if n_own > 0 {
                sum_z += sum_own / f64::from(n_own);
                n_z += 1;
            }
        }
        let all = BinaryRanks { n: self.n_tokens, n_pos, twice_rank_sum_pos, tie_sum: self.tie_sum };
        Statistics { within: (n_z > 0).then(|| sum_z / f64::from(n_z)), pooled: all.rho() }
    }
}

/// A random permutation of `n` problems for one replicate.
fn exchanged(seed: u64, replicate: u64, n: usize) -> Vec<usize> {
    let mut donors: Vec<usize> = (0..n).collect();
    Draws::new(seed, replicate).shuffle(&mut donors);
    donors
}

/// Half-open runs of important tokens.
fn runs(important: &[bool]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut from = 0;
    for run in important.chunk_by(|a, b| a == b) {
        if run[0] {
            runs.push((from, from + run.len()));
        }
        from += run.len();
    }
    runs
}

/// The runs of `m` labels stretched to `n` tokens: token `i` gets label `floor((2i + 1) m / 2n)`.
fn stretched(runs: &[(usize, usize)], m: usize, n: usize) -> Vec<(usize, usize)> {
    // The first i with (2i + 1) m >= 2 n s.
    let first = |s: usize| (2 * n * s).div_ceil(m) / 2;
    runs.iter().map(|&(from, to)| (first(from), first(to))).filter(|(from, to)| from < to).collect()
}

/// The runs of `n` labels moved `shift` tokens later, around the end.
fn shifted(runs: &[(usize, usize)], n: usize, shift: usize) -> Vec<(usize, usize)> {
    let mut moved = Vec::with_capacity(runs.len() + 1);
    for &(from, to) in runs {
        let (from, to) = (from + shift, to + shift);
        if from >= n {
            moved.push((from - n, to - n));
        } else if to > n {
            moved.extend([(from, n), (0, to - n)]);
        } else {
            moved.push((from, to));
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    type Columns = Vec<(Vec<f32>, Vec<bool>)>;

    /// The labels of a donor trace (`[m]`) stretched to `n` tokens by relative position: token `i` gets the label at
    /// `floor((i + 1/2) m / n)`.
    fn matched_labels(donor: &[bool], n: usize) -> Vec<bool> {
        (0..n).map(|i| donor[(2 * i + 1) * donor.len() / (2 * n)]).collect()
    }

    fn traces() -> Columns {
        let mut draws = Draws::new(3, 0);
        [17, 40, 3, 90]
            .map(|n| {
                let signal = (0..n).map(|_| draws.below(20) as f32).collect();
                let mut one = false;
                let labels = (0..n).map(|_| {
                    one ^= draws.below(4) == 0;
                    one
                });
                (signal, labels.collect())
            })
            .to_vec()
    }

    fn prepared(traces: &Columns) -> Surrogates {
        let columns: Vec<(&[f32], &[bool])> = traces.iter().map(|(x, y)| (&x[..], &y[..])).collect();
        Surrogates::new(&columns).expect("no NaN")
    }

    /// The definition: every label in its place, ranked again.
    fn plain(traces: &Columns, labels: &[Vec<bool>]) -> Statistics {
        let rho = |x: &[f32], y: &[bool]| {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            BinaryRanks::from_f64(&x, y).and_then(|ranks| ranks.rho())
        };
        let z: Vec<f64> = traces.iter().zip(labels).filter_map(|((x, _), y)| Some(rho(x, y)?.atanh())).collect();
        let all: Vec<f32> = traces.iter().flat_map(|(x, _)| x.clone()).collect();
        Statistics { within: crate::moments::mean(&z), pooled: rho(&all, &labels.concat()) }
    }

    fn close(a: Statistics, b: Statistics) {
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-12,
            (a, b) => a == b,
        };
        assert!(near(a.within, b.within) && near(a.pooled, b.pooled), "{a:?} {b:?}");
    }

    #[test]
    fn runs_give_what_ranking_anew_gives() {
        let traces = traces();
        let prepared = prepared(&traces);
        let own: Vec<Vec<bool>> = traces.iter().map(|(_, y)| y.clone()).collect();
        close(prepared.observed(), plain(&traces, &own));
        for replicate in 0..50 {
            let donors = exchanged(9, replicate, 4);
            let donated: Vec<Vec<bool>> = (0..4).map(|i| matched_labels(&own[donors[i]], own[i].len())).collect();
            close(prepared.replicate(Null::CrossTrace, 9, replicate), plain(&traces, &donated));
            let moved: Vec<Vec<bool>> = (0..4)
                .map(|i| {
                    let (mut labels, n) = (own[i].clone(), own[i].len());
                    labels.rotate_right(random_shift(9, replicate, i as u64, n).expect("tokens"));
                    labels
                })
                .collect();
            close(prepared.replicate(Null::CircularShift, 9, replicate), plain(&traces, &moved));
        }
    }

    #[test]
    fn a_problem_gives_its_labels_away_as_a_whole() {
        let traces = traces();
        let columns: Vec<(&[f32], &[bool])> = traces.iter().map(|(x, y)| (&x[..], &y[..])).collect();
        // Problem 0 has the traces 0 and 2, problem 1 the traces 1 and 3.
        let prepared = Surrogates::of_problems(&columns, &[0, 1, 0, 1]).expect("no NaN");
        let own: Vec<Vec<bool>> = traces.iter().map(|(_, y)| y.clone()).collect();
        let whole = [1, 0, 3, 2];
        let mut seen = [false; 2];
        for replicate in 0..20 {
            let is_moved = exchanged(9, replicate, 2)[0] == 1;
            seen[usize::from(is_moved)] = true;
            let donor = |i: usize| if is_moved { whole[i] } else { i };
            let donated: Vec<Vec<bool>> = (0..4).map(|i| matched_labels(&own[donor(i)], own[i].len())).collect();
            let found = prepared.replicate(Null::CrossTrace, 9, replicate);
            let plain = plain(&traces, &donated);
            assert!((found.pooled.expect("defined") - plain.pooled.expect("defined")).abs() < 1e-12);
        }
        assert_eq!(seen, [true; 2]);
        assert_eq!(
            Surrogates::of_problems(&columns, &[0; 4]).expect("no NaN").replicate(Null::CrossTrace, 0, 0).pooled,
            None
        );
    }

    #[test]
    fn copies_of_a_problem_count_once() {
        let traces = traces();
        let copied: Columns = traces.iter().flat_map(|trace| vec![trace.clone(); 3]).collect();
        let columns: Vec<(&[f32], &[bool])> = copied.iter().map(|(x, y)| (&x[..], &y[..])).collect();
        let problem: Vec<usize> = (0..12).map(|i| i / 3).collect();
        let (once, thrice) = (prepared(&traces), Surrogates::of_problems(&columns, &problem).expect("no NaN"));
        for null in [Null::CrossTrace, Null::CircularShift] {
            for replicate in 0..20 {
                close(thrice.replicate(null, 4, replicate), once.replicate(null, 4, replicate));
            }
        }
    }

    #[test]
    fn a_single_trace_has_no_donor() {
        let one = traces()[..1].to_vec();
        assert_eq!(prepared(&one).replicate(Null::CrossTrace, 0, 0), Statistics::default());
        assert_eq!(Surrogate::of(0.3, [None, None]), None);
        assert!(Surrogates::new(&[(&[f32::NAN], &[true])]).is_none());
    }

    #[test]
    fn the_p_value_is_about_the_mean_of_the_surrogates() {
        let found = Surrogate::of(0.5, [Some(0.3), Some(0.5), None, Some(0.4)]).expect("surrogates");
        assert!((found.mean - 0.4).abs() < 1e-15 && (found.p - 0.75).abs() < 1e-15);
        assert!((found.z.expect("a spread") - 1.0).abs() < 1e-12);
    }
}
