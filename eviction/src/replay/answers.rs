//! Answers decoded after a trace, from the tokens that are still held.
//!
//! Nothing is evicted while the answer is decoded, so that only the evictions before it count.

use epikv_model::Model;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Pos, Rotation, RowCache, Scope};
use epikv_model::sampler::Sampling;
use epikv_model::session::{RowSpec, Session};
use epikv_model::taps::ProbePlan;
use epikv_tasks::problem::Problem;
use epikv_tasks::trace::{FinishReason, Generation, Sampling as Sampled, build_trace};

use super::recording::Recording;
use crate::error::Result;

/// Tokens that one pass reads at most.
const TOKENS_A_PASS: usize = 512;

/// An answer and whether it is right.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    pub(super) correct: Option<bool>,
    pub(super) answer: Option<String>,
}

/// What answers of one trace share: its keys and values without eviction.
pub(super) struct Answers<'a> {
    model: &'a Model,
    recording: &'a Recording<'a>,
    answer_tokens: usize,
    /// Everything but the last token, in one kept set for each layer and head.
    full: RowCache,
}

impl<'a> Answers<'a> {
    pub(super) fn new(model: &'a Model, recording: &'a Recording<'a>, answer_tokens: usize) -> Result<Self> {
        let mut full = model.decoder.cache(Scope::PerHead, Capacity::Fixed(recording.fed().len()))?;
        for tokens in recording.fed().chunks(TOKENS_A_PASS) {
            let input = RowInput::next(&full, tokens.to_vec(), LogitsOf::None);
            model.decoder.forward(&[input], &mut [&mut full], &ProbePlan::default())?;
        }
        Ok(Self { model, recording, answer_tokens, full })
    }

    /// The answer from everything.
    pub(super) fn full(&self) -> Result<Answered> {
        self.decode(self.full.clone())
    }

    /// The answer from what a policy held, as it held it.
    pub(super) fn own(&self, held: &RowCache) -> Result<Answered> {
        self.decode(held.clone())
    }

    /// The answer from the tokens that a policy held, with the keys and values that they have without eviction; `None`
    /// where the policy places tokens elsewhere.
    pub(super) fn clean(&self, held: &RowCache) -> Result<Option<Answered>> {
        if held.rotation() != Rotation::Position {
            return Ok(None);
        }
        let heads = self.full.sets().len() / self.full.n_layers();
        let mut clean = self.full.clone();
        for set in 0..clean.sets().len() {
            let kept: Vec<Pos> = held.set_of(set / heads, set % heads).positions().collect();
            clean.evict(set, |pos| kept.binary_search(&pos).is_ok());
        }
        self.decode(clean).map(Some)
    }

    /// The answer from the tokens at some positions, ascending, of all that there are.
    pub(super) fn of_positions(&self, kept: &[Pos]) -> Result<Answered> {
        let mut cache = self.full.clone();
        for set in 0..cache.sets().len() {
            cache.evict(set, |pos| kept.binary_search(&pos).is_ok());
        }
        self.decode(cache)
    }

    /// Decodes the answer from a cache, which is moved into storage with room for it.
    fn decode(&self, mut cache: RowCache) -> Result<Answered> {
        let (model, recording) = (self.model, self.recording);
        // The context has no room for more, however many tokens were asked for.
        let room = model.decoder.config().max_positions.saturating_sub(recording.tokens.len());
        let held: Vec<usize> = (0..cache.sets().len()).map(|set| cache.len(set)).collect();
        cache.compact(|set| held[set] + self.answer_tokens.min(room) + 1)?;
        let mut session = Session::new(&model.decoder);
        session.add(RowSpec {
            key: 0,
            context: recording.tokens[recording.tokens.len() - 1..].to_vec(),
            cache,
            max_new: self.answer_tokens,
            stop_ids: model.stop_ids(),
            sampling: Sampling::Greedy,
            draft: [].into(),
        })?;
        let row = loop {
            session.step(&ProbePlan::default())?;
            if let Some(row) = session.take_finished().pop() {
                break row;
            }
        };
        let Some(finish) = FinishReason::of(row.finish) else { return Ok(Answered { correct: None, answer: None }) };
        let trace = recording.trace;
        let problem = Problem {
            id: trace.problem_id.clone(),
            dataset: trace.dataset.clone(),
            problem: trace.problem.clone(),
            gold: trace.gold.clone(),
            level: None,
            subject: None,
            gold_spans: None,
        };
        let token_ids = [recording.tokens.as_slice(), &row.generated].concat();
        let generation = Generation {
            prompt: None,
            token_ids: &token_ids,
            n_prompt: recording.n_prompt,
            finish_reason: finish,
            sampling: Sampled::default(),
        };
        let graded = build_trace(trace.trace_id.clone(), &problem, &generation, &model.tokenizer)?;
        // A missing answer is not right, wherever there is one to be right.
        let correct = graded.correct.or_else(|| (graded.answer.is_none() && graded.gold.is_some()).then_some(false));
        Ok(Answered { correct, answer: graded.answer })
    }
}
