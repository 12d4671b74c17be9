//! The generation loop: rows are added and leave when they end; each step feeds all of them.

mod draft;
mod draft_score;
mod row;
mod score;
mod side_by_side;

use std::iter::Sum;
use std::ops::AddAssign;

use crate::batch::RowInput;
use crate::cache::RowCache;
use crate::decoder::Decoder;
use crate::error::{Error, Result};
use crate::plan::{ReadPlan, StepPlan};
use crate::sampler::Choice;
use crate::taps::{ProbePlan, Taps};

pub use draft_score::DraftScore;
use row::{Ends, Row};
pub use row::{Finish, FinishedRow, RowSpec, Until};
pub use score::score_draft;
pub use side_by_side::side_by_side;

/// Tokens of contexts and drafts that one step reads, over all rows: at most, or as many as the first row asks for.
const TOKENS_A_STEP: usize = 512;

/// Tokens that went through the model, by purpose, and what came back from the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Context tokens read.
    pub prefill: u64,
    /// Draft tokens read.
    pub draft: u64,
    /// Single tokens fed while decoding.
    pub decode: u64,
    /// Bytes copied from the device to the host; none on the CPU.
    pub bytes_to_host: u64,
}

impl AddAssign for Ledger {
    fn add_assign(&mut self, more: Self) {
        self.prefill += more.prefill;
        self.draft += more.draft;
        self.decode += more.decode;
        self.bytes_to_host += more.bytes_to_host;
    }
}

impl Sum for Ledger {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// What a step did.
#[derive(Debug)]
pub struct Step {
    /// Chosen tokens, by the caller's key. Rows still reading their context have none.
    pub choices: Vec<(usize, Choice)>,
    /// Key, and number of tokens fed, of each row of the pass, in order of the taps.
    pub fed: Vec<(usize, usize)>,
    /// What the plan asked for.
    pub taps: Taps,
    /// Keys that the newest token of each row of the pass attended to, summed over layers and KV heads.
    pub n_read: Vec<u64>,
}

/// Generation over packed rows.
pub struct Session<'m> {
    decoder: &'m Decoder,
    rows: Vec<Row>,
    ledger: Ledger,
    /// Of the decoder when the session began.
    bytes_before: u64,
    until: Option<Until<'m>>,
}

impl<'m> Session<'m> {
    /// A session without rows.
    pub fn new(decoder: &'m Decoder) -> Self {
        let bytes_before = decoder.bytes_to_host();
        Self { decoder, rows: Vec::new(), ledger: Ledger::default(), bytes_before, until: None }
    }

    /// Ends each row as soon as `until` holds, which is asked after each new token.
    #[must_use]
    pub fn until(self, until: Until<'m>) -> Self {
        Self { until: Some(until), ..self }
    }

    /// Tokens forwarded and bytes copied so far.
    pub fn ledger(&self) -> Ledger {
        Ledger { bytes_to_host: self.decoder.bytes_to_host() - self.bytes_before, ..self.ledger }
    }

    /// Rows under way.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no row is under way.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row.
    pub fn add(&mut self, spec: RowSpec) -> Result<()> {
        if spec.context.is_empty() || spec.max_new == 0 || self.rows.iter().any(|r| r.spec.key == spec.key) {
            return Err(Error::Request {
                what: "row to generate",
                expected: "a key of its own, at least one context token and one new token".to_owned(),
                got: format!("key {}, {} context tokens, max_new {}", spec.key, spec.context.len(), spec.max_new),
            });
        }
        self.rows.push(Row::new(spec));
        Ok(())
    }

    /// The cache of a row, to be edited between steps.
    pub fn cache_mut(&mut self, key: usize) -> Option<&mut RowCache> {
        self.rows.iter_mut().find(|r| r.spec.key == key).map(|r| &mut r.spec.cache)
    }

    /// Says what the next pass of a row reads of what its cache holds; the passes after it read everything again. False if
    /// there is no such row.
    pub fn read(&mut self, key: usize, plan: ReadPlan) -> bool {
        let row = self.rows.iter_mut().find(|row| row.spec.key == key);
        row.map(|row| row.read = plan).is_some()
    }

    /// Removes and returns the rows that ended.
    pub fn take_finished(&mut self) -> Vec<FinishedRow> {
        let (ended, open): (Vec<Row>, Vec<Row>) = self.rows.drain(..).partition(|r| r.finish.is_some());
        self.rows = open;
        ended.into_iter().filter_map(Row::finished).collect()
    }

    /// One pass: a chunk of context for rows that still read, one token for the others, and after it what is left of a draft.
    pub fn step(&mut self, plan: &ProbePlan) -> Result<Step> {
        let max_positions = self.decoder.config().max_positions;
        let (mut active, mut inputs) = (Vec::new(), Vec::new());
        let mut room = TOKENS_A_STEP;
        for (i, row) in self.rows.iter().enumerate().filter(|(_, r)| r.finish.is_none()) {
            // A row waits until its whole next chunk fits, so that where its context is cut depends on nothing else: sums
            // over a chunk then have the same bits in any batch.
            let chunk = row.unread().min(TOKENS_A_STEP);
            if room < chunk {
                continue;
            }
            let (input, n_draft) = row.next_input(chunk, max_positions);
            room = room.saturating_sub(chunk + n_draft);
            let purpose = if row.generated.is_empty() { &mut self.ledger.prefill } else { &mut self.ledger.decode };
            *purpose += (input.tokens.len() - n_draft) as u64;
            self.ledger.draft += n_draft as u64;
            inputs.push(input);
            active.push((i, n_draft));
        }
        if inputs.is_empty() {
            return Ok(Step { choices: Vec::new(), fed: Vec::new(), taps: Taps::default(), n_read: Vec::new() });
        }
        let (logits, taps, n_read) = self.forward(&active, &inputs, plan)?;
        let mut logits = logits.chunks_exact(self.decoder.config().vocab_size);
        let (mut choices, mut fed) = (Vec::new(), Vec::new());
        for (&(i, n_draft), input) in active.iter().zip(&inputs) {
            let row = &mut self.rows[i];
            fed.push((row.spec.key, input.tokens.len()));
            let own: Vec<&[f32]> = logits.by_ref().take(input.n_logits()).collect();
            let chosen = row.take(input, n_draft, &own, Ends { max_positions, until: self.until });
            choices.extend(chosen.into_iter().map(|choice| (row.spec.key, choice)));
        }
        Ok(Step { choices, fed, taps, n_read })
    }

    /// Keeps up to `batch` rows from `specs` under way until all ended; `done` gets each as it ends.
    pub fn run<E: From<Error>>(
        &mut self,
        mut specs: impl Iterator<Item = Result<RowSpec>>,
        batch: usize,
        mut done: impl FnMut(FinishedRow) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let plan = ProbePlan::default();
        let mut more = true;
        loop {
            while more && self.rows.len() < batch.max(1) {
                match specs.next() {
                    Some(spec) => self.add(spec?)?,
                    None => more = false,
                }
            }
            if self.rows.is_empty() {
                return Ok(());
            }
            self.step(&plan)?;
            for row in self.take_finished() {
                done(row)?;
            }
        }
    }

    /// One pass over some rows; returns the wanted logits, row after row.
    fn forward(
        &mut self,
        active: &[(usize, usize)],
        inputs: &[RowInput],
        plan: &ProbePlan,
    ) -> Result<(Vec<f32>, Taps, Vec<u64>)> {
        let (mut caches, mut read): (Vec<&mut RowCache>, Vec<ReadPlan>) = (Vec::new(), Vec::new());
        for (i, row) in self.rows.iter_mut().enumerate() {
            if active.binary_search_by_key(&i, |(i, _)| *i).is_ok() {
                caches.push(&mut row.spec.cache);
                read.push(std::mem::take(&mut row.read));
            }
        }
        let output = self.decoder.forward(inputs, &mut caches, StepPlan { probe: plan, read: &read })?;
        Ok((logits_of(self.decoder, output.logits.as_ref())?, output.taps, output.n_read))
    }
}

/// Logits of a pass, `[rows, vocabulary]` laid flat.
fn logits_of(decoder: &Decoder, logits: Option<&candle_core::Tensor>) -> Result<Vec<f32>> {
    logits.map_or(Ok(Vec::new()), |logits| Ok(decoder.backend().host(logits)?.to_vec()))
}
