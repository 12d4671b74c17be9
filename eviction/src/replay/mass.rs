//! Label mass: which share of the important tokens is still held.
//!
//! At a step, with `n` tokens that could be evicted so far, `a` of them held, `m` of the `n` important and `h` of those held:
//!
//! ```text
//! share  = h / m        random = a / n        best = min(a, m) / m
//! gain   = (sum share - sum random) / (sum best - sum random)          over the steps with n > a and m > 0
//! ```
//!
//! `random` is what a uniform choice of `a` among `n` holds on average, `best` what a choice holds that knows the labels:
//! both follow from the counts, so neither is run. Tokens that could be evicted are those outside the protection of that
//! step. Counts are summed over kept sets.

use std::collections::BTreeSet;

use epikv_model::cache::{Pos, RowCache};

use crate::policy::protect::Protected;

/// What was held of the important tokens, step by step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mass {
    n_important: usize,
    /// Of the last step: share, random, best.
    end: Option<[f64; 3]>,
    /// Sums of the same over steps, and how many.
    sums: [f64; 3],
    n_steps: usize,
}

impl Mass {
    /// Notes the state after a step and its eviction.
    pub(crate) fn note(&mut self, cache: &RowCache, protected: Protected, important: &BTreeSet<u32>) {
        let Some(newest) = cache.last() else { return };
        let could = |pos: Pos| !protected.contains(pos, newest);
        let n = (newest.0 as usize + 1) - protected.len(newest);
        let m = important.iter().filter(|&&pos| pos <= newest.0 && could(Pos(pos))).count();
        self.n_important = m;
        let (mut held, mut held_important) = (0, 0);
        for set in cache.sets() {
            for pos in set.positions().filter(|&pos| could(pos)) {
                held += 1;
                held_important += usize::from(important.contains(&pos.0));
            }
        }
        let sets = cache.sets().len();
        self.end = (m > 0).then(|| {
            let a = held as f64 / sets as f64;
            let (n, m) = (n as f64, m as f64);
            [held_important as f64 / sets as f64 / m, a / n, a.min(m) / m]
        });
        if let Some(shares) = self.end.filter(|_| held < n * sets) {
            self.sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
            self.n_steps += 1;
        }
    }

    /// Important tokens that could be evicted at the last step.
    pub fn n_important(&self) -> usize {
        self.n_important
    }

    /// The share at the last step; `None` without important tokens.
    pub fn end(&self) -> Option<f64> {
        self.end.map(|[share, ..]| share)
    }

    /// Its mean over the steps at which something was missing; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        (self.n_steps > 0).then(|| self.sums[0] / self.n_steps as f64)
    }

    /// The gain at the last step; `None` where a random choice is as good as the best.
    pub fn gain_end(&self) -> Option<f64> {
        self.end.and_then(gain)
    }

    /// The gain over all steps.
    pub fn gain_mean(&self) -> Option<f64> {
        gain(self.sums)
    }
}

fn gain([share, random, best]: [f64; 3]) -> Option<f64> {
    (best - random > 1e-12).then(|| (share - random) / (best - random))
}

#[cfg(test)]
mod tests {
    use epikv_model::Device;
    use epikv_model::batch::{LogitsOf, RowInput};
    use epikv_model::cache::{Capacity, Scope};
    use epikv_model::decoder::Decoder;
    use epikv_model::linear::WeightFormat;
    use epikv_model::load::open;
    use epikv_model::taps::ProbePlan;

    use super::*;

    #[test]
    fn by_hand() {
        let (config, weights, _) = open(&"random:1,layers=1".parse().expect("a spec")).expect("a model");
        let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights");
        let mut cache = decoder.cache(Scope::Global, Capacity::Growing).expect("a cache");
        let input = RowInput::next(&cache, (3..13).collect(), LogitsOf::None);
        decoder.forward(&[input], &mut [&mut cache], &ProbePlan::default()).expect("a pass");
        // Ten tokens; 2..=7 could go, 3, 5 and 9 are important, so two of those that could go.
        let (protected, important) = (Protected { n_first: 2, recency: 2 }, BTreeSet::from([3, 5, 9]));
        let mut mass = Mass::default();
        mass.note(&cache, protected, &important);
        assert_eq!((mass.n_important(), mass.end(), mass.mean(), mass.gain_end()), (2, Some(1.0), None, None));
        // 3 goes and 6 goes: four of six held, one of two important ones.
        cache.evict(0, |pos| pos.0 != 3 && pos.0 != 6);
        mass.note(&cache, protected, &important);
        assert_eq!(mass.end(), Some(0.5));
        let gain = (0.5 - 4.0 / 6.0) / (1.0 - 4.0 / 6.0);
        assert!((mass.gain_end().expect("defined") - gain).abs() < 1e-12);
        assert!((mass.gain_mean().expect("one step") - gain).abs() < 1e-12);
        mass.note(&cache, protected, &BTreeSet::new());
        assert_eq!((mass.end(), mass.gain_end()), (None, None), "nothing is important");
    }
}
