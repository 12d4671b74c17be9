//! A generation step by step: a pass, scores, an eviction.

use anyhow::{Context, Result, ensure};
use epikv_eviction::{Evictor, Limits, Policy};
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Pos, RowCache};
use epikv_model::decoder::Decoder;
use epikv_model::sampler::RandomStream;
use epikv_model::taps::{ProbePlan, Taps};
use epikv_signals::{Chunk, Setup};

use crate::models::{by_logit, values};

const STREAM: RandomStream = RandomStream { seed: 0, problem: 0, sample: 0 };

/// A generation under a policy.
pub(crate) struct Steps<'m> {
    decoder: &'m Decoder,
    plan: ProbePlan,
    pub(crate) cache: RowCache,
    pub(crate) evictor: Evictor,
    /// Logits after the last token fed.
    pub(crate) logits: Vec<f32>,
}

impl<'m> Steps<'m> {
    /// Nothing fed yet; `plan` is recorded beside what the policy needs.
    pub(crate) fn new(decoder: &'m Decoder, policy: &Policy, limits: &Limits, plan: &ProbePlan) -> Result<Self> {
        let n_layers = decoder.config().n_layers;
        let setup = Setup { recency: limits.recency(), stream: STREAM, ..Setup::new(n_layers) };
        let score = policy.score.start(&setup)?;
        let plan = score.plan().union(plan);
        let cache = decoder.cache(policy.scope, Capacity::Growing)?.with_rotation(policy.position.rotation())?;
        let evictor = Evictor::new(policy, limits, STREAM, score);
        Ok(Self { decoder, plan, cache, evictor, logits: Vec::new() })
    }

    /// Feeds tokens and scores them; returns what the pass recorded.
    pub(crate) fn feed(&mut self, tokens: &[u32], prompt: bool) -> Result<Taps> {
        let input = RowInput::next(&self.cache, tokens.to_vec(), LogitsOf::Last);
        let output = self.decoder.forward(&[input], &mut [&mut self.cache], &self.plan)?;
        self.logits = values(&output.logits.context("no logits")?)?;
        self.evictor.push(&Chunk::new(&output.taps, 0..tokens.len()), &self.cache, prompt)?;
        Ok(output.taps)
    }

    /// Evicts after a step that fed these tokens.
    pub(crate) fn evict(&mut self, tokens: &[u32]) -> Result<()> {
        self.evictor.evict(&mut self.cache, tokens)?;
        Ok(())
    }

    /// Evicts a token whatever the policy says.
    pub(crate) fn remove(&mut self, set: usize, pos: Pos) -> Result<()> {
        ensure!(self.cache.remove(set, pos), "token {} is not held", pos.0);
        self.evictor.forget(set, pos);
        Ok(())
    }

    /// The positions that a kept set holds.
    pub(crate) fn held(&self, set: usize) -> Vec<u32> {
        self.cache.sets()[set].positions().map(|pos| pos.0).collect()
    }

    /// The arg-max token, and how far it is above the next.
    pub(crate) fn choice(&self) -> (u32, f64) {
        let order = by_logit(&self.logits);
        (order[0] as u32, f64::from(self.logits[order[0]] - self.logits[order[1]]))
    }
}
