//! State of a generation beside its row in the session: scores, certificate, times and recorded signals.

use std::time::{Duration, Instant};

use epikv_model::cache::{Capacity, RowCache};
use epikv_model::decoder::Decoder;
use epikv_model::plan::ReadPlan;
use epikv_model::sampler::RandomStream;
use epikv_model::session::FinishedRow;
use epikv_signals::{Chunk, Setup};

use crate::engine::certificate::Certificate;
use crate::engine::evictor::Evictor;
use crate::engine::generation::{Decoded, Generation, Recorded, Times};
use crate::engine::recorder::Recorder;
use crate::error::Result;
use crate::policy::allocate::Sets;
use crate::policy::limits::Limits;
use crate::policy::protect::Protected;
use crate::policy::{Policy, Trigger};

/// An empty cache as a policy wants it.
pub(crate) fn fresh_cache(
    decoder: &Decoder,
    policy: &Policy,
    capacity: Capacity,
    stream: RandomStream,
) -> Result<RowCache> {
    let cache = decoder.cache(policy.scope, capacity)?.with_rotation(policy.position.rotation())?;
    // A number of its own, which no draw at a token uses.
    let seed = stream.uniform(usize::from(u16::MAX)).to_bits();
    Ok(cache.with_precision(policy.cache, seed)?)
}

/// The state of one generation.
pub(crate) struct Running {
    evictor: Evictor,
    certificate: Certificate,
    storage: Storage,
    n_prompt: usize,
    /// Whether the policy reads a part of what is held.
    reads_part: bool,
    /// Tokens fed so far and, of those that are not, the newest: the prompt, then what was chosen.
    tokens: Vec<u32>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) signals: Vec<Recorded>,
    times: Times,
}

/// How many slots a kept set needs once the prompt has been read.
#[derive(Debug, Clone, Copy)]
struct Storage {
    /// Slots beyond the budget; `None` for a policy that evicts nothing.
    more: Option<usize>,
    /// No more is ever held, however large the budget is.
    longest: usize,
    /// Whether budgets change at evictions, and the slots with them.
    is_moving: bool,
    /// Whether the slots are those of the budgets.
    is_fitted: bool,
}

impl Storage {
    /// Slots of a kept set; `None` where it grows freely.
    fn slots(self, limits: &Limits, set: usize) -> Option<usize> {
        Some(limits.of(set).saturating_add(self.more?).min(self.longest))
    }

    /// Gives each kept set the slots of its budget: once, when the prompt has been read, and again where budgets change.
    fn fit(&mut self, cache: &mut RowCache, limits: &Limits) -> Result<()> {
        if self.is_fitted && !self.is_moving {
            return Ok(());
        }
        self.is_fitted = true;
        let n_sets = cache.sets().len();
        let slots = (0..n_sets).map(|set| Some(self.slots(limits, set)?.max(cache.len(set))));
        let Some(slots) = slots.collect::<Option<Vec<usize>>>() else { return Ok(()) };
        let changes = |(set, &slots): (usize, &usize)| {
            let capacity = cache.sets()[set].capacity();
            capacity > slots || self.is_moving && capacity < slots
        };
        if slots.iter().enumerate().any(changes) {
            cache.compact(|set| slots[set])?;
        }
        Ok(())
    }
}

impl Running {
    /// An empty cache for a generation, and its scores and certificate.
    pub(crate) fn start(
        decoder: &Decoder,
        policy: &Policy,
        limits: &Limits,
        generation: &Generation<'_>,
    ) -> Result<(RowCache, Self)> {
        let (config, stream) = (decoder.config(), policy.stream(generation.stream));
        let n_prompt = generation.prompt.len();
        policy.check()?;
        let sets = Sets { scope: policy.scope, n_layers: config.n_layers, n_kv_heads: config.n_kv_heads };
        let limits = if policy.has_budget() { limits.divided(policy.allocate, sets, None)? } else { limits.clone() };
        let longest = n_prompt.saturating_add(generation.max_new).min(config.max_positions);
        let (more, longest) = match policy.trigger {
            Trigger::Never => (None, longest),
            // What is generated after the one eviction stays, so storage grows from there.
            Trigger::Prefill => (Some(1), usize::MAX),
            trigger => (Some(trigger.slack() + 1), longest),
        };
        let storage = Storage { more, longest, is_moving: policy.allocate.is_by_score(), is_fitted: false };
        let capacities = (0..sets.count()).map(|set| Some(storage.slots(&limits, set)?.max(n_prompt)));
        let capacity = match capacities.collect() {
            Some(capacities) if policy.trigger != Trigger::Prefill => Capacity::Sets(capacities),
            _ => Capacity::Growing,
        };
        let cache = fresh_cache(decoder, policy, capacity, stream)?;
        let setup = Setup {
            recency: limits.recency(),
            stream,
            labels: generation.labels.clone(),
            ..Setup::new(config.n_layers)
        };
        let score = policy.score.start(&setup)?;
        let budget = policy.evicts().then(|| limits.tokens());
        let work = Self {
            evictor: Evictor::new(policy, &limits, stream, score),
            certificate: Certificate::new(budget, policy.trigger.slack()),
            storage,
            n_prompt,
            reads_part: !policy.read.is_all(),
            tokens: generation.prompt.to_vec(),
            recorder: None,
            signals: Vec::new(),
            times: Times::default(),
        };
        Ok((cache, work))
    }

    /// What was really held so far.
    pub(crate) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// What is protected.
    pub(crate) fn protected(&self) -> Protected {
        self.evictor.limits().protected()
    }

    /// Takes another trigger, one that the command line does not have.
    #[cfg(test)]
    pub(crate) fn set_trigger(&mut self, trigger: Box<dyn crate::policy::trigger::TriggerState>) {
        self.evictor.trigger = trigger;
    }

    /// The scores of what is held, by kept set.
    #[cfg(test)]
    pub(crate) fn scores(&self, cache: &RowCache) -> Vec<Vec<f32>> {
        crate::engine::evictor::checked_scores(self.evictor.score(), cache).expect("scores")
    }

    /// What the next step reads, once the prompt has been read; `None` for everything.
    pub(crate) fn read_plan(&self, cache: &RowCache) -> Result<Option<ReadPlan>> {
        let is_reading = cache.last().is_none_or(|newest| newest.0 as usize + 1 < self.n_prompt);
        if is_reading { Ok(None) } else { self.evictor.read_plan(cache) }
    }

    /// Notes a token that was chosen, or that is fed next.
    pub(crate) fn chosen(&mut self, token: u32) {
        self.tokens.push(token);
    }

    /// Notes bytes that were copied from the device to the host for this generation.
    pub(crate) fn crossed(&mut self, bytes: u64) {
        self.times.bytes_to_host += bytes;
    }

    /// Scores the tokens of a step, evicts, and notes what is held. Of the pass the caller says how many keys its newest
    /// token read, over all layers and heads, and how long it took.
    pub(crate) fn after_step(
        &mut self,
        decoder: &Decoder,
        cache: &mut RowCache,
        chunk: &Chunk<'_>,
        (n_read, share): (u64, Duration),
    ) -> Result<()> {
        let n_fed = cache.last().map_or(0, |pos| pos.0 as usize + 1);
        let (prompt, is_reading) = (n_fed <= self.n_prompt, n_fed < self.n_prompt);
        if prompt {
            self.times.prefill += share;
        } else {
            self.times.decode += share;
        }
        self.certificate.before_eviction(cache);
        if self.reads_part && !prompt {
            self.certificate.has_read(n_read, cache.n_layers() * cache.n_kv_heads());
        }
        let started = Instant::now();
        self.evictor.push(chunk, cache, prompt)?;
        for one in self.signals.iter_mut().filter(|_| !prompt) {
            one.series.values.extend(one.signal.push(chunk)?);
        }
        let scored = Instant::now();
        let fed = n_fed.saturating_sub(chunk.len())..n_fed;
        let cut = self.evictor.select(cache, self.tokens.get(fed).unwrap_or_default())?;
        let selected = Instant::now();
        if let Some(cut) = &cut {
            self.evictor.apply(cut, cache);
        }
        if !is_reading {
            self.storage.fit(cache, self.evictor.limits())?;
        }
        decoder.renumber(cache)?;
        self.times.score += scored - started;
        self.times.select += selected - scored;
        self.times.moves += selected.elapsed();
        if let (Some(recorder), Some(cut)) = (&mut self.recorder, &cut) {
            recorder.note(cut, cache);
        }
        let n_removed = cut.map_or(0, |cut| cut.n_removed(cache.sets().len()));
        self.certificate.after_eviction(cache, self.evictor.limits(), n_removed, is_reading);
        Ok(())
    }

    pub(crate) fn finish(self, row: FinishedRow) -> Decoded {
        Decoded {
            generated: row.generated,
            margins: row.margins,
            finish: row.finish,
            certificate: self.certificate,
            times: self.times,
            signals: self.signals.into_iter().map(|one| one.series).collect(),
        }
    }
}
