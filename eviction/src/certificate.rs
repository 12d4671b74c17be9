//! What was really held, measured on the cache and not taken from the policy's own account.

use epikv_model::cache::{Pos, RowCache};

use crate::select::Protected;

/// Sizes and evictions of one generation, over all steps and all kept sets. Sizes are in tokens a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Certificate {
    /// The budget; `None` for a policy that evicts nothing.
    pub budget: Option<usize>,
    /// Most tokens held after a step and its eviction.
    pub max_held: usize,
    /// Most tokens held at any time: a step appends before it evicts.
    pub peak_held: usize,
    /// Steps, those that read the prompt included.
    pub n_steps: usize,
    /// Sum over steps of the tokens held after each.
    pub sum_held: usize,
    /// Steps after which tokens were evicted.
    pub n_evictions: usize,
    /// Tokens evicted.
    pub n_evicted: usize,
    /// Protected tokens found missing after a step, summed over steps.
    pub n_protected_lost: usize,
    /// Bytes of the cache's storage at most, free slots included.
    pub peak_kv_bytes: usize,
}

impl Certificate {
    pub(crate) fn new(budget: Option<usize>) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Whether the budget was never exceeded after a step and nothing protected was ever missing.
    pub fn holds(&self) -> bool {
        self.n_protected_lost == 0 && self.budget.is_none_or(|budget| self.max_held <= budget)
    }

    /// Mean over steps of the tokens held after each; `None` without steps.
    pub fn mean_held(&self) -> Option<f64> {
        (self.n_steps > 0).then(|| self.sum_held as f64 / self.n_steps as f64)
    }

    /// Notes the state between a step and its eviction.
    pub(crate) fn before_eviction(&mut self, cache: &RowCache) {
        self.peak_held = self.peak_held.max(largest_set(cache));
        self.peak_kv_bytes = self.peak_kv_bytes.max(cache.bytes());
    }

    /// Notes the state after the eviction, which freed `n_evicted` slots.
    pub(crate) fn after_eviction(&mut self, cache: &RowCache, protected: Protected, n_evicted: usize) {
        let held = largest_set(cache);
        self.max_held = self.max_held.max(held);
        self.sum_held += held;
        self.n_steps += 1;
        self.n_evictions += usize::from(n_evicted > 0);
        self.n_evicted += n_evicted;
        if let Some(newest) = cache.last() {
            self.n_protected_lost += n_missing(cache, protected, newest);
        }
    }
}

fn largest_set(cache: &RowCache) -> usize {
    (0..cache.sets().len()).map(|set| cache.len(set)).max().unwrap_or(0)
}

/// Protected positions that a kept set lacks, over all sets.
fn n_missing(cache: &RowCache, protected: Protected, newest: Pos) -> usize {
    let missing = |set: &epikv_model::cache::SlotMap| {
        let there = set.positions().filter(|&pos| protected.contains(pos, newest)).count();
        protected.len(newest) - there
    };
    cache.sets().iter().map(missing).sum()
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
    use crate::budget::Limits;
    use crate::policy::Protect;

    #[test]
    fn an_eviction_that_breaks_the_rules_is_seen() {
        let (config, weights, _) = open(&"random:1,layers=1".parse().expect("a spec")).expect("a model");
        let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights");
        let mut cache = decoder.cache(Scope::Global, Capacity::Growing).expect("a cache");
        let input = RowInput::next(&cache, (3..13).collect(), LogitsOf::None);
        decoder.forward(&[input], &mut [&mut cache], &ProbePlan::default()).expect("a pass");

        let limits = Limits::new(8, 4).expect("feasible");
        let protected = Protected::new(Protect { prompt: true, recency: true }, limits);
        let mut certificate = Certificate::new(Some(limits.tokens()));
        certificate.before_eviction(&cache);
        certificate.after_eviction(&cache, protected, 0);
        assert!(!certificate.holds(), "10 tokens in a budget of 8");

        let mut certificate = Certificate::new(Some(limits.tokens()));
        certificate.before_eviction(&cache);
        let n_evicted = cache.evict(0, |pos| pos.0 != 1 && pos.0 != 5 && pos.0 != 9);
        certificate.after_eviction(&cache, protected, n_evicted);
        assert!(!certificate.holds(), "1 is of the prompt and 9 the newest");
        assert_eq!((certificate.peak_held, certificate.max_held, certificate.n_protected_lost), (10, 7, 2));
        assert_eq!((certificate.n_evictions, certificate.n_evicted, certificate.mean_held()), (1, 3, Some(7.0)));
    }
}
