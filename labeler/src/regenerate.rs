//! Greedy regenerations of answers, many at a time.
//!
//! The protocol of the paper makes a fresh forward pass over the whole context of each window: nothing is shared, and this
//! is what anything faster is held against. Keys and values before a window are those of the trace itself, though, so the
//! fast protocol reads them once a trace and starts each row at its window; and it reads the likely answer, that of the
//! control, in one pass instead of a pass a token. Rows do not depend on how they are cut, so both give the same bits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epikv_grader::BoxStream;
use epikv_model::Model;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Prefix, Scope};
use epikv_model::sampler::Sampling;
use epikv_model::session::{Finish, FinishedRow, Ledger, RowSpec, Session, side_by_side};
use epikv_model::taps::ProbePlan;

use crate::config::{Config, Stop};
use crate::error::Result;

/// A regenerated answer.
#[derive(Debug, Clone)]
pub(crate) struct Regenerated {
    /// Text of the new tokens, without the ending one.
    pub(crate) text: String,
    /// The new tokens, the ending one included.
    pub(crate) ids: Arc<[u32]>,
    pub(crate) finish: Finish,
    pub(crate) min_margin: Option<f32>,
    pub(crate) n_forwarded: usize,
    pub(crate) wall_s: f64,
}

/// What an answer is regenerated from.
pub(crate) struct Context {
    /// All its tokens.
    pub(crate) tokens: Vec<u32>,
    /// A cache that holds at least its first tokens, and how many of them are used.
    pub(crate) prefix: Option<(Arc<Prefix>, usize)>,
    /// What the answer will probably be.
    pub(crate) draft: Arc<[u32]>,
}

/// The cache of some tokens, to be shared.
pub(crate) fn read_prefix(model: &Model, tokens: &[u32]) -> epikv_model::Result<Arc<Prefix>> {
    /// Tokens of a pass, which bound its memory and change no bit.
    const CHUNK: usize = 512;
    let mut cache = model.decoder.cache(Scope::Global, Capacity::Growing)?;
    for chunk in tokens.chunks(CHUNK) {
        let input = RowInput::next(&cache, chunk.to_vec(), LogitsOf::None);
        model.decoder.forward(&[input], &mut [&mut cache], &ProbePlan::default())?;
    }
    Ok(Arc::new(Prefix::freeze(cache)?))
}

/// Regenerates the answers of `n` contexts, a batch at a time in each session; `done` gets each as it ends, by the key of
/// its context.
pub(crate) fn regenerate(
    model: &Model,
    n: usize,
    contexts: impl Iterator<Item = epikv_model::Result<(usize, Context)>> + Send,
    config: &Config,
    done: impl FnMut(usize, Regenerated) -> Result<()> + Send,
) -> Result<Ledger> {
    let (stop_ids, max_new) = (model.stop_ids(), config.max_new);
    let boxed = |ids: &[u32]| holds_box(model, ids);
    let specs = contexts.map(|context| {
        let (key, Context { mut tokens, prefix, draft }) = context?;
        let mut cache = model.decoder.cache(Scope::Global, Capacity::Growing)?;
        if let Some((prefix, n)) = prefix {
            cache = cache.with_prefix(prefix, n)?;
            tokens.drain(..n);
        }
        let (stop_ids, sampling) = (stop_ids.clone(), Sampling::Greedy);
        Ok(RowSpec { key, context: tokens, cache, max_new, stop_ids, sampling, draft })
    });
    let (specs, done) = (Mutex::new(specs), Mutex::new(done));
    let ledgers = side_by_side(&model.decoder, n, || -> Result<Ledger> {
        let mut session = Session::new(&model.decoder);
        if config.stop == Stop::AtBox {
            session = session.until(&boxed);
        }
        let own = std::iter::from_fn(|| locked(&specs).next());
        session.run(own, config.batch, |row| -> Result<()> {
            let one = Regenerated::of_row(model, &row)?;
            locked(&done)(row.key, one)
        })?;
        Ok(session.ledger())
    });
    ledgers.into_iter().sum()
}

/// Whether the text of some tokens holds a complete box, if the last of them can have closed it.
fn holds_box(model: &Model, ids: &[u32]) -> bool {
    // A box without braces is closed by what follows it, whatever that is.
    let text = model.tokenizer.decode(ids).unwrap_or_default();
    BoxStream::new().push(&text)
}

/// What only one session at a time may use. A session that failed while it held it left it whole.
fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Regenerated {
    pub(crate) fn new(
        model: &Model,
        ids: &[u32],
        finish: Finish,
        min_margin: Option<f32>,
        n_forwarded: usize,
        wall_s: f64,
    ) -> Result<Self> {
        let text = model.tokenizer.decode(&ids[..ids.len().saturating_sub(usize::from(finish == Finish::Eos))])?;
        Ok(Self { text, ids: ids.into(), finish, min_margin, n_forwarded, wall_s })
    }

    fn of_row(model: &Model, row: &FinishedRow) -> Result<Self> {
        let min_margin = row.margins.iter().copied().reduce(f32::min);
        Self::new(model, &row.generated, row.finish, min_margin, row.n_forwarded, row.wall.as_secs_f64())
    }

    /// Whether it was stopped before its own end.
    pub(crate) fn is_cut(&self) -> bool {
        !matches!(self.finish, Finish::Eos | Finish::Stopped)
    }
}
