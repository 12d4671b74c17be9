//! A score of policies as a signal: one number a generated token of a whole trace, without any eviction.
//!
//! | name | value at token `t` |
//! | --- | --- |
//! | `SCORE` | the score of `t` when the trace has ended; for a frozen score the number that `t` got when it was fed |
//! | `SCORE@age=W` | the score of `t` when `W` tokens have followed it, and so of all tokens at the same age; at the end of the trace where that comes before |
//!
//! `SCORE` is any score of the table but `labels`, with its argument: `snapkv`, `r-kv(lambda0.3)@age=64`. One cache that all
//! layers and heads share holds every token, so a score is the mean over layers and heads where it has several. Prompt
//! tokens, the window's own tokens of a score by an observation window, and tokens at which a signal is undefined have no
//! value. Numbers that are drawn are those of sample 0 under the seed 0.
//!
//! Cost: that of the score, once, and at each generated token for an age.

use epikv_model::cache::{RowCache, SlotMap};
use epikv_model::sampler::{RandomStream, stream_number};
use epikv_model::taps::ProbePlan;

use super::row::{Build, SignalRow};
use super::signal::SignalSpec;
use crate::error::Result;
use crate::scores::{Need, Score, ScoreRef, Setup, Step};
use crate::words::kept;

/// What stands before the age in a name.
const AGED: &str = "@age=";

/// No trace is longer.
const MAX_AGE: usize = 1 << 24;

/// The row of `SCORE` or `SCORE@age=W`; `None` for another name.
pub(super) fn row(name: &str) -> Option<SignalRow> {
    let (text, age) = name.split_once(AGED).map_or((name, None), |(text, age)| (text, Some(age)));
    let score: ScoreRef = text.parse().ok().filter(|score: &ScoreRef| !score.needs(Need::Labels))?;
    let age = match age {
        Some(digits) => Some(digits.parse().ok().filter(|n: &usize| *n <= MAX_AGE && n.to_string() == digits)?),
        None => None,
    };
    let when = match age {
        Some(age) if score.is_live() => format!("when {age} tokens have followed"),
        // Given once, it has no age.
        Some(_) => return None,
        None if score.is_live() => "at the end of the trace".to_owned(),
        None => "given when the token is fed".to_owned(),
    };
    let name = age.map_or_else(|| score.to_string(), |age: usize| format!("{score}{AGED}{age}"));
    let doc = format!("The score {score} of policies, {when}: {}", score.spec().doc);
    let spec = SignalSpec { name: kept(&name), doc: kept(&doc), unit: "1", source: score.spec().source };
    Some(SignalRow { spec: Box::leak(Box::new(spec)), build: Build::Score(score, age) })
}

/// A score at work on one trace.
#[derive(Debug)]
pub struct ScoreSignal {
    spec: &'static SignalSpec,
    score: Box<dyn Score>,
    age: Option<usize>,
    n_prompt: usize,
    /// Of the tokens so far, `[n]`.
    values: Vec<Option<f32>>,
}

impl ScoreSignal {
    /// Nothing fed yet, for a model of `n_layers` and a trace of some problem.
    pub(super) fn new(
        spec: &'static SignalSpec,
        (score, age): (ScoreRef, Option<usize>),
        n_layers: usize,
        problem: &str,
    ) -> Result<Self> {
        let stream = RandomStream { seed: 0, problem: stream_number(problem), sample: 0 };
        let score = score.start(&Setup { stream, ..Setup::new(n_layers) })?;
        Ok(Self { spec, score, age, n_prompt: 0, values: Vec::new() })
    }

    /// The row of the tables.
    pub fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    /// What the forward pass must record.
    pub fn plan(&self) -> ProbePlan {
        self.score.plan()
    }

    /// Whether a pass may feed it one generated token only. The prompt is one pass in any case.
    pub fn by_single_tokens(&self) -> bool {
        self.age.is_some() || self.score.by_single_tokens()
    }

    /// Takes the next tokens of the trace, which a cache with one kept set holds with all before them.
    ///
    /// # Errors
    /// If the pass did not record what [`ScoreSignal::plan`] asks for, or the score cannot be computed.
    pub fn push(&mut self, step: &Step<'_>) -> Result<()> {
        self.score.observe(step)?;
        self.values.resize(self.values.len() + step.chunk.len(), None);
        if step.prompt {
            self.n_prompt = self.values.len();
        }
        let due = self.age.and_then(|age| self.values.len().checked_sub(age + 1));
        match due.filter(|at| *at >= self.n_prompt) {
            Some(at) => self.take(step.cache, at..at + 1),
            None => Ok(()),
        }
    }

    /// The values of all tokens, `[n]`, once the trace has ended; nothing is remembered.
    ///
    /// # Errors
    /// If the score cannot be computed.
    pub fn finish(&mut self, cache: &RowCache) -> Result<Vec<Option<f32>>> {
        let n = self.values.len();
        let first = self.age.map_or(0, |age| n.saturating_sub(age));
        self.take(cache, first.max(self.n_prompt)..n)?;
        Ok(std::mem::take(&mut self.values))
    }

    /// Takes the scores of some tokens as they are now.
    fn take(&mut self, cache: &RowCache, tokens: std::ops::Range<usize>) -> Result<()> {
        let scores = self.score.scores(cache)?;
        let held = cache.sets().iter().flat_map(SlotMap::positions).map(|pos| pos.0 as usize);
        for (at, &score) in held.zip(scores.iter().flatten()).filter(|(at, _)| tokens.contains(at)) {
            self.values[at] = Some(score).filter(|score| score.is_finite());
        }
        Ok(())
    }
}
