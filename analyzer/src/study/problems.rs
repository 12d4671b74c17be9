//! Which problem each trace solves: the unit that is drawn, exchanged and counted.
//!
//! Samples of one problem are alike, up to copies, so that they are no independent observations. A figure over traces is
//! the mean over problems of the mean over their traces:
//!
//! ```text
//! mean_p mean_(i in p) x_i
//! ```
//!
//! Where every problem has one trace, this is the mean over traces.

use std::collections::BTreeMap;

/// The problem of each trace, numbered in the order in which they first come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    of: Vec<usize>,
    n: usize,
}

impl Problems {
    /// Traces with the same key solve the same problem.
    pub fn new<K: Ord>(keys: impl IntoIterator<Item = K>) -> Self {
        let mut numbers = BTreeMap::new();
        let mut number = |key| {
            let next = numbers.len();
            *numbers.entry(key).or_insert(next)
        };
        let of: Vec<usize> = keys.into_iter().map(&mut number).collect();
        Self { n: numbers.len(), of }
    }

    /// `n` traces, each of a problem of its own.
    pub fn each(n: usize) -> Self {
        Self { of: (0..n).collect(), n }
    }

    /// The number of problems.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The problem of each trace, `[traces]`, from 0.
    pub fn of_traces(&self) -> &[usize] {
        &self.of
    }

    /// Those of the traces that are kept.
    pub(crate) fn only(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        Self::new(self.of.iter().enumerate().filter(|(trace, _)| is_kept(*trace)).map(|(_, problem)| *problem))
    }

    /// The mean over the traces of each problem, `[problems]`; `values` has one entry a trace.
    pub(crate) fn means(&self, values: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0_u32); self.n];
        for (&problem, value) in self.of.iter().zip(values) {
            let (sum, n) = &mut sums[problem];
            (*sum, *n) = (*sum + value, *n + 1);
        }
        sums.into_iter().map(|(sum, n)| sum / f64::from(n)).collect()
    }

    /// The mean over the traces of each problem whose value is defined, `[problems]`; null where none is.
    pub(crate) fn means_of_defined(&self, values: &[Option<f64>]) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0_u32); self.n];
        for (&problem, value) in self.of.iter().zip(values) {
            if let Some(value) = value {
                let (sum, n) = &mut sums[problem];
                (*sum, *n) = (*sum + value, *n + 1);
            }
        }
        sums.into_iter().map(|(sum, n)| (n > 0).then(|| sum / f64::from(n))).collect()
    }

    /// Multiplicities of the traces, `[traces]`, from those of their problems.
    pub(crate) fn expand(&self, counts: &[u32]) -> Vec<u32> {
        self.of.iter().map(|&problem| counts[problem]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_counts_once_however_many_samples_it_has() {
        let problems = Problems::new(["b", "a", "b", "b"]);
        assert_eq!((problems.len(), problems.of_traces()), (2, &[0, 1, 0, 0][..]));
        assert_eq!(problems.means(&[1.0, 5.0, 2.0, 3.0]), [2.0, 5.0]);
        assert_eq!(problems.means_of_defined(&[None, None, Some(2.0), Some(4.0)]), [Some(3.0), None]);
        assert_eq!(problems.expand(&[3, 0]), [3, 0, 3, 3]);
        assert_eq!(problems.only(|trace| trace != 0 && trace != 3), Problems::new(["a", "b"]));
        assert_eq!(Problems::each(3), Problems::new(["x", "y", "z"]));
    }
}
