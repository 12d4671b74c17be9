//! Greedy regenerations of answers, many at a time.
//!
//! The protocol of the paper makes a fresh forward pass over the whole context of each window. The fast protocol saves
//! two things. Keys and values before a window are those of the trace itself, so it reads them once a trace and starts
//! each row at its window. And it reads the likely answer, that of the control, in one pass instead of a pass a token.
//! Rows do not depend on how they are cut, so both protocols give the same bits.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epikv_grader::BoxStream;
use epikv_model::Model;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Pos, Prefix, Scope};
use epikv_model::sampler::Sampling;
use epikv_model::session::{DraftScore, Finish, FinishedRow, Ledger, RowSpec, Session, score_draft, side_by_side};
use epikv_model::taps::ProbePlan;
use epikv_model::tokenizer::Tokenizer;

use crate::error::Result;
use crate::run::config::{Config, Protocol, Stop};

/// A regenerated answer.
#[derive(Debug, Clone)]
pub(crate) struct Regenerated {
    /// Text of the new tokens, without the ending one.
    pub(crate) text: String,
    /// The new tokens, the ending one included.
    pub(crate) ids: Arc<[u32]>,
    pub(crate) finish: Finish,
    pub(crate) min_margin: Option<f32>,
    /// How likely the control's answer was.
    pub(crate) score: Option<DraftScore>,
    pub(crate) n_forwarded: usize,
    pub(crate) wall_s: f64,
}

/// What an answer is regenerated from.
pub(crate) struct Context {
    /// All its tokens.
    pub(crate) tokens: Vec<u32>,
    /// A cache that holds at least its first tokens, and how many of them are used.
    pub(crate) prefix: Option<(Arc<Prefix>, usize)>,
    /// Places among those that are withheld.
    pub(crate) hidden: Option<Range<usize>>,
    /// What the answer will probably be.
    pub(crate) draft: Arc<[u32]>,
    /// What is scored behind it.
    pub(crate) scored: Scored,
    /// New tokens at most.
    pub(crate) max_new: usize,
}

/// Whose log-probability after a context is wanted.
#[derive(Debug, Clone)]
pub(crate) enum Scored {
    /// None.
    Nothing,
    /// That of the answer which is then generated: the control's own.
    Itself,
    /// That of the control's answer. A row that reads it as its draft has the score already.
    Draft(Arc<[u32]>),
}

/// How the score of a row is made up for.
struct Later {
    scored: Scored,
    /// The last token of its context, and the tokens before that.
    last: u32,
    n_before: usize,
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
    let stop_ids = model.stop_ids();
    let watches: Mutex<BTreeMap<usize, BoxWatch>> = Mutex::default();
    let boxed = |key: usize, ids: &[u32]| locked(&watches).entry(key).or_default().holds_box(&model.tokenizer, ids);
    let later: Mutex<BTreeMap<usize, Later>> = Mutex::default();
    let specs = contexts.map(|context| {
        let (key, Context { mut tokens, prefix, hidden, draft, scored, max_new }) = context?;
        if let (Some(&last), false) = (tokens.last(), matches!(scored, Scored::Nothing)) {
            locked(&later).insert(key, Later { scored, last, n_before: tokens.len() - 1 });
        }
        let mut cache = model.decoder.cache(Scope::Global, Capacity::Growing)?;
        if let Some((prefix, n)) = prefix {
            cache = match hidden {
                Some(hidden) => cache.with_prefix_without(&prefix, n, hidden)?,
                None => cache.with_prefix(prefix, n)?,
            };
            tokens.drain(..n);
        }
        let (stop_ids, sampling) = (stop_ids.clone(), Sampling::Greedy);
        Ok(RowSpec { key, context: tokens, cache, max_new, stop_ids, sampling, draft })
    });
    let (specs, done) = (Mutex::new(specs), Mutex::new(done));
    let ledgers = side_by_side(&model.decoder, n, || -> Result<Ledger> {
        let mut session = Session::new(&model.decoder);
        let mut scoring = Ledger::default();
        if config.stop == Stop::AtBox {
            session = session.until(&boxed);
        }
        let own = std::iter::from_fn(|| locked(&specs).next());
        session.run(own, config.batch, |row| -> Result<()> {
            let mut one = Regenerated::of_row(model, &row)?;
            let (key, later) = (row.key, locked(&later).remove(&row.key));
            locked(&watches).remove(&key);
            if let Some(later) = later {
                let (score, ledger) = later.score(model, row, config)?;
                one.score = score;
                scoring += ledger;
            }
            locked(&done)(key, one)
        })?;
        scoring += session.ledger();
        Ok(scoring)
    });
    ledgers.into_iter().sum()
}

impl Later {
    /// The score of a row that ended: its draft's, where that is what was wanted, or by one more pass over its own cache.
    fn score(
        self,
        model: &Model,
        row: FinishedRow,
        config: &Config,
    ) -> epikv_model::Result<(Option<DraftScore>, Ledger)> {
        let draft: Arc<[u32]> = match self.scored {
            Scored::Nothing => return Ok((None, Ledger::default())),
            Scored::Draft(_) if config.protocol == Protocol::Fast => return Ok((row.draft_score, Ledger::default())),
            Scored::Draft(ids) => ids,
            Scored::Itself => row.generated.into(),
        };
        if draft.is_empty() {
            return Ok((None, Ledger::default()));
        }
        let mut cache = row.cache;
        cache.truncate(self.n_before.checked_sub(1).map(|last| Pos(last as u32)));
        let (key, sampling, stop_ids) = (row.key, Sampling::Greedy, Vec::new());
        let context = vec![self.last];
        score_draft(&model.decoder, RowSpec { key, context, cache, max_new: config.max_new, stop_ids, sampling, draft })
    }
}

/// Watches the tokens of a row for the end of its first box, reading each once.
#[derive(Debug, Default)]
struct BoxWatch {
    stream: BoxStream,
    n_read: usize,
}

impl BoxWatch {
    /// Whether the text of the tokens holds a complete box; they begin with those of the call before. A box without braces is
    /// closed by what follows it, whatever that is.
    fn holds_box(&mut self, tokenizer: &Tokenizer, ids: &[u32]) -> bool {
        /// A decoder may join tokens by spaces, or strip the first one: they are read behind some that came before.
        const BEFORE: usize = 4;
        let from = self.n_read.saturating_sub(BEFORE);
        let n_known = std::mem::replace(&mut self.n_read, ids.len()) - from;
        let text = tokenizer.byte_offsets(&ids[from..]).unwrap_or_default();
        let known = n_known.checked_sub(1).and_then(|last| text.ends.get(last)).copied().unwrap_or(0);
        self.stream.push(&String::from_utf8_lossy(&text.bytes[known..]))
    }
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
        Ok(Self { text, ids: ids.into(), finish, min_margin, score: None, n_forwarded, wall_s })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_ends_where_reading_everything_anew_says() {
        let bytes = Tokenizer::builtin_bytes().expect("built in");
        let tiny = Model::open(&"tiny".parse().expect("a model"), &epikv_model::Device::Cpu, <_>::default());
        let tiny = tiny.expect("embedded").tokenizer;
        let texts = [
            r"so \boxed{} and \boxed{\left\{\frac{1}{2}\right.} and more",
            r"\boxed 5 and \boxed{6}",
            r"$\boxed7$ \fbox{\text{a \} b}} }",
            "e = c + d = 83 + 71 so e 54 . = \\boxed{ 27 } so } }",
            "\u{e9}\u{20ac}\\boxed{\u{e9}}\u{e9} no \\boxed{never closed",
            "}}} } $ \\ plain",
        ];
        for (tokenizer, text) in [&bytes, &tiny].into_iter().flat_map(|t| texts.map(|text| (t, text))) {
            let ids = tokenizer.encode(text, false).expect("any text");
            let anew = |n: &usize| {
                let text = tokenizer.decode(&ids[..*n]).expect("known ids");
                BoxStream::new().push(&text)
            };
            let slow = (1..=ids.len()).find(anew);
            let mut watch = BoxWatch::default();
            assert_eq!((1..=ids.len()).find(|n| watch.holds_box(tokenizer, &ids[..*n])), slow, "{text}");
        }
    }
}
