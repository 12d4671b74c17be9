//! One generation under a policy.
//!
//! The session takes the steps; between two of them the policy edits the cache. A step appends before the policy evicts,
//! so a cache of `K + 1` slots is enough and is all that is allocated.

use std::time::Duration;

use epikv_model::cache::Capacity;
use epikv_model::decoder::Decoder;
use epikv_model::sampler::{RandomStream, Sampling};
use epikv_model::session::{Finish, RowSpec, Session};
use epikv_model::taps::ProbePlan;

use crate::budget::Limits;
use crate::certificate::Certificate;
use crate::error::{Error, Result};
use crate::evictor::Evictor;
use crate::policy::{Policy, Trigger};

/// The session's name for the only row.
const KEY: usize = 0;

/// What is generated.
#[derive(Debug, Clone, Copy)]
pub struct Generation<'a> {
    /// Prompt tokens.
    pub prompt: &'a [u32],
    /// New tokens at most.
    pub max_new: usize,
    /// Ids that end the generation.
    pub stop_ids: &'a [u32],
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Keys of the numbers that a policy draws.
    pub stream: RandomStream,
}

impl<'a> Generation<'a> {
    /// Greedy tokens after a prompt, without stop ids; keys are zero.
    pub fn greedy(prompt: &'a [u32], max_new: usize) -> Self {
        let stream = RandomStream { seed: 0, problem: 0, sample: 0 };
        Self { prompt, max_new, stop_ids: &[], sampling: Sampling::Greedy, stream }
    }
}

/// What was generated, and what was held meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// New tokens, a stop id included.
    pub generated: Vec<u32>,
    /// Logit margin of each new token.
    pub margins: Vec<f32>,
    /// Why it ended.
    pub finish: Finish,
    /// Sizes and evictions.
    pub certificate: Certificate,
    /// Elapsed time. Differs from run to run.
    pub wall: Duration,
}

/// Generates under a policy, evicting after each step.
///
/// # Errors
/// If the limits are those of another prompt, the policy's score is undefined, or the model fails.
pub fn decode(decoder: &Decoder, policy: Policy, limits: Limits, generation: &Generation<'_>) -> Result<Decoded> {
    let n_prompt = generation.prompt.len();
    if limits.n_prompt() != n_prompt {
        return Err(Error::OtherPrompt { n_prompt, limits_for: limits.n_prompt() });
    }
    let (capacity, budget) = match policy.trigger {
        Trigger::Never => (Capacity::Growing, None),
        Trigger::EachStep => {
            let most = limits.tokens().min(n_prompt.saturating_add(generation.max_new));
            (Capacity::Fixed(most + 1), Some(limits.tokens()))
        }
    };
    let mut evictor = Evictor::new(policy, limits, generation.stream);
    let mut certificate = Certificate::new(budget);
    let mut session = Session::new(decoder);
    session.add(RowSpec {
        key: KEY,
        context: generation.prompt.to_vec(),
        cache: decoder.cache(policy.scope, capacity)?,
        max_new: generation.max_new,
        stop_ids: generation.stop_ids.to_vec(),
        sampling: generation.sampling,
    })?;
    let plan = ProbePlan::default();
    loop {
        session.step(&plan)?;
        if let Some(cache) = session.cache_mut(KEY) {
            certificate.before_eviction(cache);
            let n_evicted = evictor.after_step(cache)?;
            certificate.after_eviction(cache, evictor.protected(), n_evicted);
        }
        if let Some(row) = session.take_finished().pop() {
            let (generated, margins) = (row.generated, row.margins);
            return Ok(Decoded { generated, margins, finish: row.finish, certificate, wall: row.wall });
        }
    }
}
