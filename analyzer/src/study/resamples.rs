//! The bootstrap: which problems each replicate takes, and the interval that follows.
//!
//! Problems are drawn with replacement and taken whole, with all their traces, since neither the tokens of a trace nor the
//! samples of a problem are independent. Replicate `b` is
//! keyed by (seed, `b`) and the number of problems, so that all columns over the same problems use the same draws (layers can
//! be compared, and their means have an interval), and no thread changes one.
//!
//! A pooled coefficient needs new ranks for each replicate. They come from counts between pairs of traces
//! ([`PooledPairs`]) or, where there are many short traces, from one walk over the sorted tokens ([`PooledSort`]); both are
//! exact.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use epikv_stats::bootstrap::bootstrap_interval;
use epikv_stats::moments::mean_of_counts;
use epikv_stats::resample::resample_counts;
use epikv_stats::{BinaryRanks, Confidence, PooledPairs, PooledSort};

use crate::study::join::Labelled;

/// Multiplicities of the problems, `[replicates, n]`, made once for each number of problems.
#[derive(Debug)]
pub struct Resamples {
    seed: u64,
    replicates: usize,
    made: Mutex<BTreeMap<usize, Arc<Vec<u32>>>>,
}

impl Resamples {
    /// Draws under a seed. Without replicates there is no bootstrap interval.
    pub fn new(seed: u64, replicates: usize) -> Self {
        Self { seed, replicates, made: Mutex::new(BTreeMap::new()) }
    }

    /// The seed of the draws.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether there are replicates over `n` problems.
    pub(crate) fn has_any(&self, n: usize) -> bool {
        n >= 2 && self.replicates > 0
    }

    /// The replicates of a statistic over `n` problems, and its values with one problem left out.
    ///
    /// `statistic` gets the multiplicity of each problem, `[n]`.
    pub(crate) fn draws(&self, n: usize, statistic: impl Fn(&[u32]) -> Option<f64>) -> Draws {
        if !self.has_any(n) {
            return Draws::default();
        }
        let counts = self.counts(n);
        let mut once = vec![1; n];
        let jackknife = (0..n).map(|left_out| {
            once[left_out] = 0;
            let value = statistic(&once);
            once[left_out] = 1;
            value
        });
        Draws { jackknife: jackknife.collect(), replicates: counts.chunks_exact(n).map(statistic).collect() }
    }

    /// The draws of the mean of one value a problem.
    pub(crate) fn draws_of_mean(&self, values: &[f64]) -> Draws {
        self.draws(values.len(), |counts| mean_of_counts(values, counts))
    }

    /// The draws of a coefficient that is pooled in Fisher's z, one a problem.
    pub(crate) fn draws_of_rho(&self, z: &[f64]) -> Draws {
        self.draws(z.len(), |counts| mean_of_counts(z, counts).map(f64::tanh))
    }

    fn counts(&self, n: usize) -> Arc<Vec<u32>> {
        // A thread that panicked while it held the lock left whole entries only.
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let draw = || (0..self.replicates).flat_map(|b| resample_counts(self.seed, b as u64, n)).collect();
        Arc::clone(made.entry(n).or_insert_with(|| Arc::new(draw())))
    }
}

/// Replicates of a statistic; empty where there is no bootstrap.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draws {
    /// `[B]`, null where the statistic is undefined.
    pub replicates: Vec<Option<f64>>,
    /// `[n]`, the statistic without each problem.
    pub jackknife: Vec<Option<f64>>,
}

impl Draws {
    /// Replicates in which the statistic is defined.
    pub fn n_defined(&self) -> usize {
        self.replicates.iter().flatten().count()
    }

    /// The `BCa` interval of the statistic whose value is `estimate`; `None` where it is undefined, such as without
    /// replicates, with one on each side of the estimate missing, or where leaving out a problem is undefined.
    pub fn interval(&self, estimate: f64, confidence: Confidence) -> Option<(f64, f64)> {
        let jackknife: Option<Vec<f64>> = self.jackknife.iter().copied().collect();
        let replicates: Vec<f64> = self.replicates.iter().flatten().copied().collect();
        bootstrap_interval(estimate, &replicates, &jackknife?, confidence)?.bca
    }

    /// The draws of a weighted sum of statistics, replicate by replicate; empty unless all have the same draws.
    pub fn combine(parts: &[(f64, &Self)]) -> Self {
        let Some((_, first)) = parts.first() else { return Self::default() };
        let shape = |draws: &Self| (draws.replicates.len(), draws.jackknife.len());
        if parts.iter().any(|(_, draws)| shape(draws) != shape(first)) {
            return Self::default();
        }
        let sum = |of: fn(&Self) -> &Vec<Option<f64>>| {
            let at = |i: usize| parts.iter().map(|(weight, draws)| Some(weight * of(draws)[i]?)).sum::<Option<f64>>();
            (0..of(first).len()).map(at).collect()
        };
        Self { replicates: sum(|draws| &draws.replicates), jackknife: sum(|draws| &draws.jackknife) }
    }
}

/// Tokens of several traces, ready to be ranked under any multiplicity of the traces.
#[derive(Debug)]
pub(crate) enum Pool {
    Pairs(PooledPairs),
    Sort(PooledSort),
}

impl Pool {
    /// Takes whichever form has the cheaper replicate. The values are finite, so both exist.
    pub(crate) fn new(traces: &[&Labelled]) -> Option<Self> {
        let columns: Vec<(&[f32], &[bool])> = traces.iter().map(|t| (t.signal(), t.important())).collect();
        let n: usize = columns.iter().map(|(signal, _)| signal.len()).sum();
        if columns.len() * columns.len() / 2 <= n {
            PooledPairs::new(&columns).map(Self::Pairs)
        } else {
            PooledSort::new(&columns).map(Self::Sort)
        }
    }

    /// The pooled ranks with trace `i` taken `counts[i]` times.
    pub(crate) fn ranks(&self, counts: &[u32]) -> BinaryRanks {
        match self {
            Self::Pairs(pairs) => pairs.with_multiplicity(counts),
            Self::Sort(sorted) => sorted.with_multiplicity(counts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_statistics_see_the_same_draws() {
        let resamples = Resamples::new(7, 40);
        let first = resamples.draws(3, |counts| Some(f64::from(counts[0])));
        let total = resamples.draws(3, |counts| Some(counts.iter().map(|&c| f64::from(c)).sum()));
        assert!(total.replicates.iter().all(|&n| n == Some(3.0)) && total.jackknife == [Some(2.0); 3]);
        let sum = Draws::combine(&[(1.0, &total), (-1.0, &first)]);
        assert_eq!(sum.replicates[5], Some(3.0 - first.replicates[5].expect("defined")));
        assert_eq!(sum.jackknife, [Some(2.0), Some(1.0), Some(1.0)]);
        assert_eq!(resamples.draws(3, |counts| Some(f64::from(counts[0]))), first);
    }

    #[test]
    fn without_enough_traces_or_replicates_there_is_no_interval() {
        let one = Resamples::new(0, 10).draws(1, |_| Some(0.5));
        assert_eq!((one.n_defined(), one.interval(0.5, Confidence::P95)), (0, None));
        assert_eq!(Resamples::new(0, 0).draws(5, |_| Some(0.5)), Draws::default());
        let undefined = Resamples::new(0, 10).draws(4, |counts| (counts[0] > 0).then_some(0.5));
        assert!(undefined.n_defined() < 10 && undefined.interval(0.5, Confidence::P95).is_none());
        assert_eq!(Draws::combine(&[(1.0, &one), (1.0, &undefined)]), Draws::default());
    }

    #[test]
    fn both_forms_of_the_pool_agree() {
        let trace = |level: f32| Labelled::new((0..5).map(|i| (Some(level + i as f32), i % 2 == 0)));
        let many: Vec<Labelled> = (0..12).map(|i| trace((i % 4) as f32)).collect();
        let many: Vec<&Labelled> = many.iter().collect();
        let (few, all) = (Pool::new(&many[..2]).expect("finite"), Pool::new(&many).expect("finite"));
        assert!(matches!(few, Pool::Pairs(_)) && matches!(all, Pool::Sort(_)));
        let mut counts = vec![0; 12];
        counts[..2].copy_from_slice(&[3, 1]);
        assert_eq!(few.ranks(&[3, 1]), all.ranks(&counts));
    }
}
