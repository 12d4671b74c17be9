//! A policy at work on one cache: called after each step, it frees what does not stay.

use epikv_model::cache::{Pos, RowCache};
use epikv_model::sampler::RandomStream;

use crate::budget::Limits;
use crate::error::{Error, Result};
use crate::policy::{Policy, Trigger};
use crate::score::Frozen;
use crate::select::{Protected, kept};

/// A policy with the state of one generation: the frozen scores.
///
/// Cost of an eviction: `O(K)` comparisons, and no key or value is moved.
#[derive(Debug)]
pub(crate) struct Evictor {
    policy: Policy,
    limits: Limits,
    protected: Protected,
    scores: Frozen,
}

impl Evictor {
    pub(crate) fn new(policy: Policy, limits: Limits, stream: RandomStream) -> Self {
        Self {
            policy,
            limits,
            protected: Protected::new(policy.protect, limits),
            scores: Frozen::new(policy.score, stream),
        }
    }

    /// What it protects.
    pub(crate) fn protected(&self) -> Protected {
        self.protected
    }

    /// Evicts from every kept set that holds more than the budget; returns how many tokens, over all sets.
    pub(crate) fn after_step(&mut self, cache: &mut RowCache) -> Result<usize> {
        let Some(last) = cache.last().filter(|_| self.policy.trigger == Trigger::EachStep) else {
            return Ok(0);
        };
        self.scores.extend_to(last);
        let budget = self.limits.tokens();
        let mut n_evicted = 0;
        for set in 0..cache.sets().len() {
            if cache.len(set) <= budget {
                continue;
            }
            let held: Vec<Pos> = cache.sets()[set].positions().collect();
            let stay = kept(&held, |pos| self.scores.at(pos), self.protected, self.policy.select, budget)
                .ok_or_else(|| Error::NotANumber { score: self.policy.score.to_string(), last: last.0 })?;
            n_evicted += cache.evict(set, |pos| stay.binary_search(&pos).is_ok());
        }
        Ok(n_evicted)
    }
}
