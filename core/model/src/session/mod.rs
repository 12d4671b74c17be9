//! The one generation loop: rows come and go, each step feeds all of them.

mod row;
mod side_by_side;

use std::iter::Sum;
use std::ops::AddAssign;

use crate::batch::{LogitsOf, RowInput};
use crate::cache::{Pos, RowCache};
use crate::decoder::Decoder;
use crate::error::{Error, Result};
use crate::ops::with_f32;
use crate::sampler::Choice;
use crate::taps::{ProbePlan, Taps};

use row::Row;
pub use row::{Finish, FinishedRow, RowSpec};
pub use side_by_side::side_by_side;

/// Context tokens that one step reads at most, over all rows.
const CONTEXT_TOKENS_A_STEP: usize = 512;

/// Tokens that went through the model, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Context tokens read.
    pub prefill: u64,
    /// Draft tokens read.
    pub draft: u64,
    /// Single tokens fed while decoding.
    pub decode: u64,
}

impl AddAssign for Ledger {
    fn add_assign(&mut self, more: Self) {
        self.prefill += more.prefill;
        self.draft += more.draft;
        self.decode += more.decode;
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
}

/// What became of a draft.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// Draft tokens that the model would have chosen.
    pub agreed: usize,
    /// Tokens added to the row: the agreed ones and, unless the row ended before, the model's own next token.
    pub choices: Vec<Choice>,
}

/// Generation over packed rows.
#[derive(Debug)]
pub struct Session<'m> {
    decoder: &'m Decoder,
    rows: Vec<Row>,
    ledger: Ledger,
}

impl<'m> Session<'m> {
    /// A session without rows.
    pub fn new(decoder: &'m Decoder) -> Self {
        Self { decoder, rows: Vec::new(), ledger: Ledger::default() }
    }

    /// Tokens forwarded so far.
    pub fn ledger(&self) -> Ledger {
        self.ledger
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

    /// Whether a row was added and has not ended.
    pub fn is_under_way(&self, key: usize) -> bool {
        self.rows.iter().any(|r| r.spec.key == key && r.finish.is_none())
    }

    /// Removes and returns the rows that ended.
    pub fn take_finished(&mut self) -> Vec<FinishedRow> {
        let (ended, open): (Vec<Row>, Vec<Row>) = self.rows.drain(..).partition(|r| r.finish.is_some());
        self.rows = open;
        ended.into_iter().filter_map(Row::finished).collect()
    }

    /// One pass: a chunk of context for rows that still read, one token for the others.
    pub fn step(&mut self, plan: &ProbePlan) -> Result<Step> {
        let mut budget = CONTEXT_TOKENS_A_STEP;
        let (mut active, mut inputs) = (Vec::new(), Vec::new());
        for (i, row) in self.rows.iter().enumerate().filter(|(_, r)| r.finish.is_none()) {
            if row.unread() > 0 {
                // A row waits until its whole next chunk fits, so that where its context is cut depends on nothing else:
                // sums over a chunk then have the same bits in any batch.
                let chunk = row.unread().min(CONTEXT_TOKENS_A_STEP);
                if budget < chunk {
                    continue;
                }
                let input = row.next_input(chunk);
                budget -= input.tokens.len();
                self.ledger.prefill += input.tokens.len() as u64;
                inputs.push(input);
            } else {
                self.ledger.decode += 1;
                inputs.push(row.next_input(1));
            }
            active.push(i);
        }
        if inputs.is_empty() {
            return Ok(Step { choices: Vec::new(), fed: Vec::new(), taps: Taps::default() });
        }
        let (logits, taps) = self.forward(&active, &inputs, plan)?;
        let mut logits = logits.chunks_exact(self.decoder.config().vocab_size);
        let (mut choices, mut fed) = (Vec::new(), Vec::new());
        for (&i, input) in active.iter().zip(&inputs) {
            let row = &mut self.rows[i];
            row.fed += if row.generated.is_empty() { input.tokens.len() } else { 0 };
            fed.push((row.spec.key, input.tokens.len()));
            if input.n_logits() == 1
                && let Some(logits) = logits.next()
            {
                let position = input.first.0 as usize + input.tokens.len();
                let choice = row.accept(logits, position, self.decoder.config().max_positions);
                choices.extend(choice.map(|c| (row.spec.key, c)));
            }
        }
        Ok(Step { choices, fed, taps })
    }

    /// Feeds a row its pending tokens and a draft of what it may choose next, in one pass, and keeps what agrees.
    ///
    /// The row is afterwards exactly where single steps would have brought it. Works for sampling too, since step `t`
    /// draws the same number in any case.
    pub fn verify(&mut self, key: usize, draft: &[u32]) -> Result<Verified> {
        let Some(i) = self.rows.iter().position(|r| r.spec.key == key && r.finish.is_none()) else {
            return Err(Error::Request {
                what: "row to verify",
                expected: "the key of a row under way".to_owned(),
                got: key.to_string(),
            });
        };
        let row = &self.rows[i];
        let mut input = row.next_input(usize::MAX);
        // A draft beyond the row's end, or beyond the context, could not be chosen anyway.
        let room = self.decoder.config().max_positions - (input.first.0 as usize + input.tokens.len());
        let draft = &draft[..draft.len().min(row.spec.max_new - row.generated.len()).min(room)];
        let pending = input.tokens.len();
        let purpose = if row.generated.is_empty() { &mut self.ledger.prefill } else { &mut self.ledger.decode };
        *purpose += pending as u64;
        self.ledger.draft += draft.len() as u64;
        input.tokens.extend(draft);
        input.logits = LogitsOf::LastN(draft.len() + 1);
        let first = input.first.0;
        let (logits, _) = self.forward(&[i], std::slice::from_ref(&input), &ProbePlan::default())?;
        let row = &mut self.rows[i];
        if row.generated.is_empty() {
            row.fed = row.spec.context.len();
        }
        let mut choices = Vec::new();
        let mut agreed = 0;
        for (step, logits) in logits.chunks_exact(self.decoder.config().vocab_size).enumerate() {
            let position = first as usize + pending + step;
            let Some(choice) = row.accept(logits, position, self.decoder.config().max_positions) else {
                break;
            };
            choices.push(choice);
            let right = draft.get(step) == Some(&choice.token);
            agreed += usize::from(right);
            if !right || row.finish.is_some() {
                break;
            }
        }
        // Fed and agreed, all but the last choice, which is pending again.
        let kept = (first as usize + pending + choices.len()).checked_sub(2).map(|p| Pos(p as u32));
        row.spec.cache.truncate(kept);
        Ok(Verified { agreed, choices })
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
    fn forward(&mut self, active: &[usize], inputs: &[RowInput], plan: &ProbePlan) -> Result<(Vec<f32>, Taps)> {
        let mut caches: Vec<&mut RowCache> = Vec::with_capacity(active.len());
        for (i, row) in self.rows.iter_mut().enumerate() {
            if active.contains(&i) {
                caches.push(&mut row.spec.cache);
            }
        }
        let output = self.decoder.forward(inputs, &mut caches, plan)?;
        let logits = match output.logits {
            Some(logits) => with_f32(&logits.to_device(&candle_core::Device::Cpu)?, <[f32]>::to_vec)?,
            None => Vec::new(),
        };
        Ok((logits, output.taps))
    }
}
