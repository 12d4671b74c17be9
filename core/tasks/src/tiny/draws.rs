//! Random choices in order. Each number depends on seed, place and count only.

use epikv_model::sampler::RandomStream;

/// A sequence of choices.
#[derive(Debug)]
pub(super) struct Draws {
    stream: RandomStream,
    n_drawn: usize,
}

impl Draws {
    /// The sequence with number `index` of a kind.
    pub(super) fn new(seed: u64, index: u64, kind: u32) -> Self {
        Self { stream: RandomStream { seed, problem: index, sample: kind }, n_drawn: 0 }
    }

    /// Uniform in `0..n`; 0 for an empty range.
    pub(super) fn below(&mut self, n: usize) -> usize {
        let u = self.stream.uniform(self.n_drawn);
        self.n_drawn += 1;
        ((u * n as f64) as usize).min(n.saturating_sub(1))
    }

    /// Uniform in `low..=high`.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// One of some.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Some of `from`, each at most once, in random order.
    pub(super) fn choose<T: Copy>(&mut self, n: usize, from: &[T]) -> Vec<T> {
        let mut left = from.to_vec();
        (0..n.min(left.len())).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }
}
