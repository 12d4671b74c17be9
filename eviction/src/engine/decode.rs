//! Generations under one policy, packed.
//!
//! The session takes the steps; between two of them the policy edits the caches. A step appends before the policy evicts,
//! so a cache of `K + 1` slots is enough and is all that is allocated. A prompt longer than that, which only a policy that
//! does not protect it can have, is read whole, evicted from and moved into `K + 1` slots.
//!
//! Each generation has its own cache, scores and certificate, and its bits do not depend on the rows beside it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use epikv_model::decoder::Decoder;
use epikv_model::session::{Ledger, RowSpec, Session, side_by_side};
use epikv_model::taps::ProbePlan;
use epikv_signals::Chunk;

use crate::engine::generation::{Decoded, Generation, Recorded};
use crate::engine::recorder::{Eviction, MOST_RECORDED, Recorder};
use crate::engine::running::Running;
use crate::error::{Error, Result};
use crate::policy::Policy;
use crate::policy::limits::Limits;

/// What is told of generations while they are under way, from any thread.
pub trait Watch: Sync {
    /// A generation, by the index of its job, has ended.
    ///
    /// # Errors
    /// Ends the run.
    fn done(&self, job: usize, decoded: Decoded) -> Result<()>;

    /// A pass of one session has ended, with so many tokens fed and all evictions after it made.
    fn step(&self, n_fed: usize) {
        let _ = n_fed;
    }

    /// Whether evictions are told.
    fn wants_evictions(&self) -> bool {
        false
    }

    /// Signals that are recorded of each generation, in a model of so many layers.
    ///
    /// # Errors
    /// If the model is too shallow for one.
    fn wants_signals(&self, n_layers: usize) -> Result<Vec<Recorded>> {
        let _ = n_layers;
        Ok(Vec::new())
    }

    /// Some evictions of a generation, part after part in the order in which they were made.
    ///
    /// # Errors
    /// Ends the run.
    fn evicted(&self, job: usize, part: usize, evictions: Vec<Eviction>) -> Result<()> {
        let _ = (job, part, evictions);
        Ok(())
    }
}

impl<F: Fn(usize, Decoded) + Sync> Watch for F {
    fn done(&self, job: usize, decoded: Decoded) -> Result<()> {
        self(job, decoded);
        Ok(())
    }
}

/// Generates under a policy, evicting after each step.
///
/// # Errors
/// If the limits are those of another prompt, the policy does not fit the model, or the model fails.
pub fn decode(decoder: &Decoder, policy: &Policy, limits: Limits, generation: &Generation<'_>) -> Result<Decoded> {
    let result = Mutex::new(None);
    let limits_for = limits.n_prompt();
    let jobs = [(limits, generation.clone())];
    decode_all(decoder, policy, &jobs, 1, &|_: usize, decoded: Decoded| {
        if let Ok(mut slot) = result.lock() {
            *slot = Some(decoded);
        }
    })?;
    let decoded = result.into_inner().ok().flatten();
    decoded.ok_or(Error::OtherPrompt { n_prompt: generation.prompt.len(), limits_for })
}

/// Generates for all jobs under a policy, up to `batch` in one pass; `watch` is told of each, by its index, as it ends.
///
/// What a generation gives depends on its job alone, not on batch, order or threads.
///
/// # Errors
/// As [`decode`], or those of `watch`; the generations that had ended by then were given to it.
pub fn decode_all(
    decoder: &Decoder,
    policy: &Policy,
    jobs: &[(Limits, Generation<'_>)],
    batch: usize,
    watch: &dyn Watch,
) -> Result<Ledger> {
    for (limits, generation) in jobs {
        if limits.n_prompt() != generation.prompt.len() {
            let n_prompt = generation.prompt.len();
            return Err(Error::OtherPrompt { n_prompt, limits_for: limits.n_prompt() });
        }
    }
    let n_layers = decoder.config().n_layers;
    let plan = if policy.has_budget() { policy.score.plan(n_layers)? } else { ProbePlan::default() };
    let plan = watch.wants_signals(n_layers)?.iter().fold(plan, |plan, one| plan.union(&one.signal.plan()));
    let next = AtomicUsize::new(0);
    let ledgers = side_by_side(decoder, jobs.len(), || {
        let worker = Worker { decoder, policy, plan: &plan, jobs, next: &next, running: BTreeMap::new() };
        worker.run(batch.max(1), watch)
    });
    ledgers.into_iter().sum()
}

/// One session and the generations that it has under way.
struct Worker<'a> {
    decoder: &'a Decoder,
    policy: &'a Policy,
    plan: &'a ProbePlan,
    jobs: &'a [(Limits, Generation<'a>)],
    /// The next job that nobody has taken.
    next: &'a AtomicUsize,
    running: BTreeMap<usize, Running>,
}

impl Worker<'_> {
    fn run(mut self, rows: usize, watch: &dyn Watch) -> Result<Ledger> {
        let mut session = Session::new(self.decoder);
        loop {
            while session.len() < rows {
                let key = self.next.fetch_add(1, Ordering::Relaxed);
                let Some((limits, generation)) = self.jobs.get(key) else { break };
                self.add(&mut session, key, limits, generation, watch)?;
            }
            if session.is_empty() {
                return Ok(session.ledger());
            }
            for (&key, work) in &self.running {
                if let Some(cache) = session.cache_mut(key)
                    && let Some(plan) = work.read_plan(cache)?
                {
                    session.read(key, plan);
                }
            }
            let (started, bytes_before) = (Instant::now(), self.decoder.bytes_to_host());
            let step = session.step(self.plan)?;
            let (elapsed, bytes) = (started.elapsed(), self.decoder.bytes_to_host() - bytes_before);
            let n_fed: usize = step.fed.iter().map(|(_, n)| n).sum();
            let mut first = 0;
            for (row, &(key, n)) in step.fed.iter().enumerate() {
                if let (Some(work), Some(cache)) = (self.running.get_mut(&key), session.cache_mut(key)) {
                    let part = n as f64 / n_fed as f64;
                    let (share, bytes_before) = (elapsed.mul_f64(part), self.decoder.bytes_to_host());
                    let chunk = Chunk::new(&step.taps, first..first + n).in_row(row);
                    work.after_step(self.decoder, cache, &chunk, (step.n_read[row], share))?;
                    let own = self.decoder.bytes_to_host() - bytes_before;
                    work.crossed((bytes as f64 * part) as u64 + own);
                    if let Some((part, evictions)) = work.recorder.as_mut().and_then(|r| r.take(MOST_RECORDED)) {
                        watch.evicted(key, part, evictions)?;
                    }
                }
                first += n;
            }
            for (key, choice) in &step.choices {
                if let Some(work) = self.running.get_mut(key) {
                    work.chosen(choice.token);
                }
            }
            watch.step(n_fed);
            for row in session.take_finished() {
                if let Some(mut work) = self.running.remove(&row.key) {
                    if let Some((part, evictions)) = work.recorder.as_mut().and_then(|r| r.take(1)) {
                        watch.evicted(row.key, part, evictions)?;
                    }
                    watch.done(row.key, work.finish(row))?;
                }
            }
        }
    }

    fn add(
        &mut self,
        session: &mut Session<'_>,
        key: usize,
        limits: &Limits,
        generation: &Generation<'_>,
        watch: &dyn Watch,
    ) -> Result<()> {
        let (cache, mut work) = Running::start(self.decoder, self.policy, limits, generation)?;
        work.recorder = watch.wants_evictions().then(Recorder::default);
        work.signals = watch.wants_signals(self.decoder.config().n_layers)?;
        session.add(RowSpec {
            key,
            context: generation.prompt.to_vec(),
            cache,
            max_new: generation.max_new,
            stop_ids: generation.stop_ids.to_vec(),
            sampling: generation.sampling,
            draft: [].into(),
        })?;
        self.running.insert(key, work);
        Ok(())
    }
}
