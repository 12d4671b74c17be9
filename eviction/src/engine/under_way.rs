//! What a generation has beside its row in the session: scores, certificate, times, and what is recorded.

use std::time::{Duration, Instant};

use epikv_model::cache::{Capacity, RowCache};
use epikv_model::decoder::Decoder;
use epikv_model::sampler::RandomStream;
use epikv_model::session::FinishedRow;
use epikv_signals::{Chunk, Setup, Signal};

use crate::engine::certificate::Certificate;
use crate::engine::decode::{Decoded, Generation, Series, Times};
use crate::engine::evictor::Evictor;
use crate::engine::recorder::Recorder;
use crate::error::Result;
use crate::policy::budget::Limits;
use crate::policy::select::Protected;
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

/// A signal that is recorded while tokens are evicted.
#[derive(Debug)]
pub struct Recorded {
    pub(crate) signal: Box<dyn Signal>,
    pub(crate) series: Series,
}

impl Recorded {
    /// Nothing recorded yet.
    pub fn new(layer: Option<usize>, signal: Box<dyn Signal>) -> Self {
        let series = Series { name: signal.spec().name, layer, values: Vec::new() };
        Self { signal, series }
    }
}

/// The state of one generation.
pub(crate) struct UnderWay {
    evictor: Evictor,
    certificate: Certificate,
    n_prompt: usize,
    /// Slots to go on with once the prompt has been read; taken then.
    slots: Option<usize>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) signals: Vec<Recorded>,
    times: Times,
}

impl UnderWay {
    /// An empty cache for a generation, and its scores and certificate.
    pub(crate) fn start(
        decoder: &Decoder,
        policy: &Policy,
        limits: Limits,
        generation: &Generation<'_>,
    ) -> Result<(RowCache, Self)> {
        let stream = policy.stream(generation.stream);
        let n_prompt = generation.prompt.len();
        // No more is ever held, however large the budget is.
        let longest = n_prompt.saturating_add(generation.max_new).min(decoder.config().max_positions);
        let slots = match policy.trigger {
            Trigger::Never => None,
            // What is generated after the one eviction stays, so storage grows from there.
            Trigger::Prefill => Some(limits.tokens().saturating_add(1)),
            trigger => Some(limits.tokens().saturating_add(trigger.slack() + 1).min(longest)),
        };
        let capacity = match slots {
            Some(slots) if policy.trigger != Trigger::Prefill => Capacity::Fixed(slots.max(n_prompt)),
            _ => Capacity::Growing,
        };
        let cache = fresh_cache(decoder, policy, capacity, stream)?;
        let setup = Setup {
            recency: limits.recency(),
            stream,
            labels: generation.labels.clone(),
            ..Setup::new(decoder.config().n_layers)
        };
        let score = policy.score.start(&setup)?;
        let budget = policy.evicts().then(|| limits.tokens());
        let work = Self {
            evictor: Evictor::new(policy, limits, stream, score),
            certificate: Certificate::new(budget, policy.trigger.slack()),
            n_prompt,
            slots,
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
        self.evictor.protected()
    }

    /// Scores the tokens of a step, evicts, and notes what is held.
    pub(crate) fn after_step(
        &mut self,
        decoder: &Decoder,
        cache: &mut RowCache,
        chunk: &Chunk<'_>,
        share: Duration,
    ) -> Result<()> {
        let n_fed = cache.last().map_or(0, |pos| pos.0 as usize + 1);
        let (prompt, reading) = (n_fed <= self.n_prompt, n_fed < self.n_prompt);
        if prompt {
            self.times.prefill += share;
        } else {
            self.times.decode += share;
        }
        self.certificate.before_eviction(cache);
        let started = Instant::now();
        self.evictor.push(chunk, cache, prompt)?;
        for one in self.signals.iter_mut().filter(|_| !prompt) {
            one.series.values.extend(one.signal.push(chunk)?);
        }
        let scored = Instant::now();
        let cut = if reading { None } else { self.evictor.select(cache)? };
        let selected = Instant::now();
        if let Some(cut) = &cut {
            self.evictor.apply(cut, cache);
        }
        if !reading
            && let Some(slots) = self.slots.take().map(|slots| slots.max(cache.len(0)))
            && cache.sets()[0].capacity() > slots
        {
            cache.compact(|_| slots)?;
        }
        decoder.renumber(cache)?;
        self.times.score += scored - started;
        self.times.select += selected - scored;
        self.times.moves += selected.elapsed();
        if let (Some(recorder), Some(cut)) = (&mut self.recorder, &cut) {
            recorder.note(cut, cache);
        }
        let n_evicted = cut.map_or(0, |cut| cut.n);
        self.certificate.after_eviction(cache, self.evictor.protected(), n_evicted, reading);
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
