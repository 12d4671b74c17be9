//! The certificate: sizes and evictions, measured on the cache and not reported by the policy.

use epikv_model::cache::RowCache;

use crate::policy::limits::Limits;

/// Sizes and evictions of one generation, over all steps and all kept sets. Sizes are in tokens a kept set: where the sets
/// hold different numbers of tokens their mean, rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Certificate {
    /// The budget; `None` for a policy that evicts nothing.
    pub budget: Option<usize>,
    /// Tokens beyond the budget that the policy's trigger allows between evictions.
    pub slack: usize,
    /// Most tokens held after a step and its eviction, once the prompt was read.
    pub max_held: usize,
    /// Most tokens held after an eviction.
    pub max_after_eviction: usize,
    /// Most tokens held at any time: a step appends before it evicts.
    pub peak_held: usize,
    /// Tokens held after the last step.
    pub last_held: usize,
    /// Steps, those that read the prompt included.
    pub n_steps: usize,
    /// Kept sets.
    pub n_sets: usize,
    /// Sum over steps and kept sets of the tokens held after each step.
    pub sum_held: usize,
    /// Steps from the first eviction on.
    pub n_steady: usize,
    /// Sum over them and over kept sets of the tokens held after each.
    pub sum_steady: usize,
    /// Steps after which tokens were evicted.
    pub n_evictions: usize,
    /// Tokens evicted from each kept set.
    pub n_evicted: usize,
    /// Tokens evicted from all kept sets together.
    pub sum_evicted: usize,
    /// Most tokens that a kept set held beyond its own budget after an eviction.
    pub max_over_after_eviction: usize,
    /// Most tokens that a kept set held beyond its own budget after a step and its eviction, once the prompt was read.
    pub max_over: usize,
    /// Protected tokens found missing after a step, summed over steps and kept sets.
    pub n_protected_lost: usize,
    /// Keys that generated tokens read, summed over steps, layers and KV heads; 0 for a policy that reads everything held.
    pub sum_read: u64,
    /// Steps, layers and KV heads that they are summed over.
    pub n_reads: u64,
    /// Bytes of the keys and values of `peak_held` tokens.
    pub peak_kv_bytes: usize,
    /// Bytes of the keys and values held after each step, summed over steps.
    pub kv_byte_steps: usize,
    /// Bytes of the cache's storage at most, free slots included.
    pub allocated_kv_bytes: usize,
}

impl Certificate {
    pub(crate) fn new(budget: Option<usize>, slack: usize) -> Self {
        Self { budget, slack, ..Self::default() }
    }

    /// Whether every kept set was within its own budget after every eviction and never exceeded it by more than the trigger
    /// allows, and nothing protected was ever missing.
    pub fn holds(&self) -> bool {
        let is_kept = self.max_over_after_eviction == 0 && self.max_over <= self.slack;
        self.n_protected_lost == 0 && (self.budget.is_none() || is_kept)
    }

    /// Mean over steps of the tokens held after each; `None` without steps.
    pub fn mean_held(&self) -> Option<f64> {
        (self.n_steps > 0).then(|| self.sum_held as f64 / (self.n_steps * self.n_sets) as f64)
    }

    /// Mean of the tokens held after each step from the first eviction on; `None` where nothing was evicted.
    pub fn steady_held(&self) -> Option<f64> {
        (self.n_steady > 0).then(|| self.sum_steady as f64 / (self.n_steady * self.n_sets) as f64)
    }

    /// Mean over steps, layers and KV heads of the tokens that a generated token read, itself included; `None` for a policy
    /// that reads everything held.
    pub fn mean_read(&self) -> Option<f64> {
        (self.n_reads > 0).then(|| self.sum_read as f64 / self.n_reads as f64)
    }

    /// Notes that a generated token read so many keys at so many heads together.
    pub(crate) fn has_read(&mut self, n_keys: u64, n_heads: usize) {
        self.sum_read += n_keys;
        self.n_reads += n_heads as u64;
    }

    /// Notes the state between a step and its eviction.
    pub(crate) fn before_eviction(&mut self, cache: &RowCache) {
        let held = held(cache);
        self.n_sets = cache.sets().len();
        self.peak_held = self.peak_held.max(held.div_ceil(self.n_sets));
        self.allocated_kv_bytes = self.allocated_kv_bytes.max(cache.bytes());
        self.peak_kv_bytes = self.peak_kv_bytes.max(cache.held_bytes());
    }

    /// Notes the state after the eviction, which freed `n_removed` slots of all sets together.
    ///
    /// While the prompt is being read nothing is evicted, so neither is the budget asked for.
    pub(crate) fn after_eviction(&mut self, cache: &RowCache, limits: &Limits, n_removed: usize, is_reading: bool) {
        let sum = held(cache);
        let held = sum.div_ceil(self.n_sets);
        let over = (0..self.n_sets).map(|set| cache.len(set).saturating_sub(limits.of(set))).max().unwrap_or(0);
        self.last_held = held;
        self.sum_held += sum;
        self.kv_byte_steps += cache.held_bytes();
        self.n_steps += 1;
        if !is_reading {
            self.max_held = self.max_held.max(held);
            self.max_over = self.max_over.max(over);
        }
        if n_removed > 0 {
            self.max_after_eviction = self.max_after_eviction.max(held);
            self.max_over_after_eviction = self.max_over_after_eviction.max(over);
            self.n_evictions += 1;
            self.sum_evicted += n_removed;
            self.n_evicted = self.sum_evicted.div_ceil(self.n_sets);
        }
        if self.n_evictions > 0 {
            self.n_steady += 1;
            self.sum_steady += sum;
        }
        if let Some(newest) = cache.last() {
            let protected = limits.protected();
            self.n_protected_lost += cache.sets().iter().map(|set| protected.n_missing(set, newest)).sum::<usize>();
        }
    }
}

/// Tokens that all kept sets hold together.
fn held(cache: &RowCache) -> usize {
    (0..cache.sets().len()).map(|set| cache.len(set)).sum()
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
    use crate::policy::{Protect, Recency};

    #[test]
    fn an_eviction_that_breaks_the_rules_is_seen() {
        let (config, weights, _) = open(&"random:1,layers=1".parse().expect("a spec")).expect("a model");
        let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights");
        let mut cache = decoder.cache(Scope::Global, Capacity::Growing).expect("a cache");
        let input = RowInput::next(&cache, (3..13).collect(), LogitsOf::None);
        decoder.forward(&[input], &mut [&mut cache], &ProbePlan::default()).expect("a pass");

        let protect = Protect { prompt: true, sinks: 0, recency: Recency::Tokens(2) };
        let limits = Limits::new(8, 4, protect).expect("feasible");
        let mut certificate = Certificate::new(Some(8), 0);
        certificate.before_eviction(&cache);
        certificate.after_eviction(&cache, &limits, 0, false);
        assert!(!certificate.holds(), "10 tokens in a budget of 8");
        assert!(Certificate { slack: 2, ..certificate }.holds(), "a trigger that fires at 11");

        let mut certificate = Certificate::new(Some(8), 0);
        certificate.before_eviction(&cache);
        let n_evicted = cache.evict(0, |pos| pos.0 != 1 && pos.0 != 5 && pos.0 != 9);
        certificate.after_eviction(&cache, &limits, n_evicted, false);
        assert!(!certificate.holds(), "1 is of the prompt and 9 the newest");
        assert_eq!((certificate.peak_held, certificate.max_held, certificate.n_protected_lost), (10, 7, 2));
        assert_eq!((certificate.n_evictions, certificate.n_evicted, certificate.mean_held()), (1, 3, Some(7.0)));
        assert_eq!(certificate.peak_kv_bytes, cache.bytes() / 64 * 10, "10 of 64 slots");
    }
}
