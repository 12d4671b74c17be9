//! Random draws keyed by (seed, replicate), so that replicate `b` is the same on one thread and on sixteen.
//!
//! Each replicate has its own `ChaCha8` stream: the seed is the key and the replicate the stream number. Nothing depends
//! on the order of calls. Draws below a bound are unbiased.
//!
//! # References
//!
//! Salmon et al. 2011, *Parallel random numbers: as easy as 1, 2, 3* (counter-based generators); Lemire 2019, *ACM
//! TOMACS* 29:3 (bounded draws).

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

/// The random numbers of one replicate.
#[derive(Debug, Clone)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// The stream of `replicate` under `seed`.
    pub fn new(seed: u64, replicate: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(replicate);
        Self(rng)
    }

    /// A uniform integer in `0..bound`, without bias.
    ///
    /// # Panics
    ///
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no integer below 0");
        let bound = bound as u64;
        let reject_below = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.0.next_u64()) * u128::from(bound);
            if wide as u64 >= reject_below {
                return (wide >> 64) as usize;
            }
        }
    }

    /// A random sign.
    pub fn is_plus(&mut self) -> bool {
        self.0.next_u32() & 1 == 1
    }

    /// Shuffles `items` (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i + 1);
            items.swap(i, j);
        }
    }
}

/// `n` indices drawn from `0..n` with replacement: one bootstrap sample.
pub fn resample_indices(seed: u64, replicate: u64, n: usize) -> Vec<usize> {
    let mut draws = Draws::new(seed, replicate);
    (0..n).map(|_| draws.below(n)).collect()
}

/// How often each of `n` units is drawn in [`resample_indices`], `[n]`, summing to `n`.
pub fn resample_counts(seed: u64, replicate: u64, n: usize) -> Vec<u32> {
    let mut draws = Draws::new(seed, replicate);
    let mut counts = vec![0; n];
    for _ in 0..n {
        counts[draws.below(n)] += 1;
    }
    counts
}

/// `statistic` of `replicates` bootstrap samples of `n` units, in replicate order, computed in parallel.
///
/// The statistic gets the multiplicity of each unit, `[n]`. `None` marks a replicate where it is undefined; the
/// caller counts these and leaves them out.
///
/// # References
///
/// Efron 1979, *Annals of Statistics* 7:1; Cameron, Gelbach & Miller 2008 (clusters as units).
pub fn bootstrap<F>(seed: u64, replicates: usize, n: usize, statistic: F) -> Vec<Option<f64>>
where
    F: Fn(&[u32]) -> Option<f64> + Sync,
{
    (0..replicates).into_par_iter().map(|b| statistic(&resample_counts(seed, b as u64, n))).collect()
}

/// `statistic` with each of `n` units left out in turn, `[n]`, as [`bootstrap`] gives it multiplicities.
pub fn jackknife<F>(n: usize, statistic: F) -> Vec<Option<f64>>
where
    F: Fn(&[u32]) -> Option<f64> + Sync,
{
    (0..n)
        .into_par_iter()
        .map(|left_out| {
            let mut counts = vec![1; n];
            counts[left_out] = 0;
            statistic(&counts)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replicate_depends_on_its_key_alone() {
        let all = bootstrap(7, 50, 9, |counts| Some(f64::from(counts[0])));
        for b in [0_u32, 13, 49] {
            let counts = resample_counts(7, u64::from(b), 9);
            assert_eq!(all[b as usize], Some(f64::from(counts[0])));
        }
        assert_ne!(resample_indices(7, 0, 20), resample_indices(7, 1, 20));
        assert_ne!(resample_indices(7, 0, 20), resample_indices(8, 0, 20));
    }

    #[test]
    fn streams_never_change() {
        // Stored results depend on these draws.
        assert_eq!(resample_indices(1, 2, 10), [8, 6, 3, 5, 9, 4, 1, 3, 9, 4]);
    }

    #[test]
    fn counts_are_those_of_the_indices() {
        let mut counts = vec![0; 30];
        for i in resample_indices(3, 4, 30) {
            counts[i] += 1;
        }
        assert_eq!(counts, resample_counts(3, 4, 30));
    }

    #[test]
    fn draws_cover_the_range_evenly() {
        let mut draws = Draws::new(1, 0);
        let mut seen = [0_u32; 3];
        for _ in 0..3000 {
            seen[draws.below(3)] += 1;
        }
        assert!(seen.iter().all(|&s| (900..1100).contains(&s)), "{seen:?}");
    }

    #[test]
    fn jackknife_leaves_out_one() {
        let values = [1.0, 2.0, 6.0];
        let sum = |counts: &[u32]| Some(counts.iter().zip(values).map(|(&c, v)| f64::from(c) * v).sum());
        assert_eq!(jackknife(3, sum), [Some(8.0), Some(7.0), Some(3.0)]);
    }
}
