//! What was really held, measured on the cache and not taken from the policy's own account.

use epikv_model::cache::RowCache;

use crate::policy::select::Protected;

/// Sizes and evictions of one generation, over all steps and all kept sets. Sizes are in tokens a layer.
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
    /// Sum over steps of the tokens held after each.
    pub sum_held: usize,
    /// Steps from the first eviction on.
    pub n_steady: usize,
    /// Sum over them of the tokens held after each.
    pub sum_steady: usize,
    /// Steps after which tokens were evicted.
    pub n_evictions: usize,
    /// Tokens evicted from each kept set.
    pub n_evicted: usize,
    /// Protected tokens found missing after a step, summed over steps and kept sets.
    pub n_protected_lost: usize,
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

    /// Whether the budget was kept after every eviction, never exceeded by more than the trigger allows, and nothing
    /// protected was ever missing.
    pub fn holds(&self) -> bool {
        let kept =
            |budget: usize| self.max_after_eviction <= budget && self.max_held <= budget.saturating_add(self.slack);
        self.n_protected_lost == 0 && self.budget.is_none_or(kept)
    }

    /// Mean over steps of the tokens held after each; `None` without steps.
    pub fn mean_held(&self) -> Option<f64> {
        (self.n_steps > 0).then(|| self.sum_held as f64 / self.n_steps as f64)
    }

    /// Mean of the tokens held after each step from the first eviction on; `None` where nothing was evicted.
    pub fn steady_held(&self) -> Option<f64> {
        (self.n_steady > 0).then(|| self.sum_steady as f64 / self.n_steady as f64)
    }

    /// Notes the state between a step and its eviction.
    pub(crate) fn before_eviction(&mut self, cache: &RowCache) {
        let held = largest_set(cache);
        self.peak_held = self.peak_held.max(held);
        self.allocated_kv_bytes = self.allocated_kv_bytes.max(cache.bytes());
        self.peak_kv_bytes = self.peak_kv_bytes.max(cache.held_bytes());
    }

    /// Notes the state after the eviction, which freed `n_evicted` slots of each set.
    ///
    /// While the prompt is being read nothing is evicted, so neither is the budget asked for.
    pub(crate) fn after_eviction(&mut self, cache: &RowCache, protected: Protected, n_evicted: usize, reading: bool) {
        let held = largest_set(cache);
        self.last_held = held;
        self.sum_held += held;
        self.kv_byte_steps += cache.held_bytes();
        self.n_steps += 1;
        if !reading {
            self.max_held = self.max_held.max(held);
        }
        if n_evicted > 0 {
            self.max_after_eviction = self.max_after_eviction.max(held);
            self.n_evictions += 1;
            self.n_evicted += n_evicted;
        }
        if self.n_evictions > 0 {
            self.n_steady += 1;
            self.sum_steady += held;
        }
        if let Some(newest) = cache.last() {
            self.n_protected_lost += cache.sets().iter().map(|set| protected.n_missing(set, newest)).sum::<usize>();
        }
    }
}

fn largest_set(cache: &RowCache) -> usize {
    (0..cache.sets().len()).map(|set| cache.len(set)).max().unwrap_or(0)
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
    fn an_eviction_that_breaks_the_rules_is_seen() {
        let (config, weights, _) = open(&"random:1,layers=1".parse().expect("a spec")).expect("a model");
        let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights");
        let mut cache = decoder.cache(Scope::Global, Capacity::Growing).expect("a cache");
        let input = RowInput::next(&cache, (3..13).collect(), LogitsOf::None);
        decoder.forward(&[input], &mut [&mut cache], &ProbePlan::default()).expect("a pass");

        let protected = Protected { n_first: 4, recency: 2 };
        let mut certificate = Certificate::new(Some(8), 0);
        certificate.before_eviction(&cache);
        certificate.after_eviction(&cache, protected, 0, false);
        assert!(!certificate.holds(), "10 tokens in a budget of 8");
        assert!(Certificate { slack: 2, ..certificate }.holds(), "a trigger that fires at 11");

        let mut certificate = Certificate::new(Some(8), 0);
        certificate.before_eviction(&cache);
        let n_evicted = cache.evict(0, |pos| pos.0 != 1 && pos.0 != 5 && pos.0 != 9);
        certificate.after_eviction(&cache, protected, n_evicted, false);
        assert!(!certificate.holds(), "1 is of the prompt and 9 the newest");
        assert_eq!((certificate.peak_held, certificate.max_held, certificate.n_protected_lost), (10, 7, 2));
        assert_eq!((certificate.n_evictions, certificate.n_evicted, certificate.mean_held()), (1, 3, Some(7.0)));
        assert_eq!(certificate.peak_kv_bytes, cache.bytes() / 64 * 10, "10 of 64 slots");
    }
}
