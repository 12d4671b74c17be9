//! Keep-k and delete-k: is the answer right when only the highest tokens of a score are held, or all but them?
//!
//! A label of one window says what is missing when only that window is removed. A value that is stated twice can lose
//! either copy. That shows only when many tokens are removed at once, as under a budget.

use std::collections::BTreeSet;

use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Pos, Scope};
use epikv_schemas::EvictionCurve;
use epikv_signals::{Chunk, Labels, Setup, Step};
use epikv_stats::{Ties, top_k};

use super::answers::Answers;
use super::ask::Worker;
use super::recording::Recording;
use crate::engine::evictor::checked_scores;
use crate::error::{Error, Result};
use crate::policy::parse::NamedPolicy;

/// The first policy of each score, by the score's name: what has curves of its own.
pub(super) fn of_scores<'a>(worker: &Worker<'a>) -> Vec<(String, &'a NamedPolicy)> {
    let mut done = BTreeSet::new();
    let asked = worker.policies.iter().filter(|policy| policy.policy.seed == 0 && !worker.ask.percents.is_empty());
    let named = asked.map(|policy| (policy.policy.score.to_string(), policy));
    named.filter(|(name, _)| done.insert(name.clone())).collect()
}

/// The curves of one trace for one score.
pub(super) fn curves(
    worker: &Worker<'_>,
    recording: &Recording<'_>,
    answers: &Answers<'_>,
    labels: Option<&Labels>,
    (name, policy): (&str, &NamedPolicy),
) -> Result<Vec<EvictionCurve>> {
    let mut rows = Vec::new();
    let scores = of_tokens(worker, recording, policy, labels)?;
    let n = scores.len();
    for &percent in worker.ask.percents {
        let highest =
            top_k(&scores, (n as f64 * f64::from(percent) / 100.0).round() as usize, Ties::Newer).unwrap_or_default();
        for kind in ["keep", "delete"] {
            let held = |i: &usize| highest.binary_search(i).is_ok() == (kind == "keep");
            let reasoning = (0..n).filter(held).map(|i| Pos((recording.n_prompt + i) as u32));
            let positions: Vec<Pos> = (0..recording.n_prompt as u32).map(Pos).chain(reasoning).collect();
            let answered = answers.of_positions(&positions)?;
            let n_held = positions.len() - recording.n_prompt;
            rows.push(EvictionCurve {
                trace_id: recording.trace.trace_id.clone(),
                problem_id: recording.trace.problem_id.clone(),
                dataset: recording.trace.dataset.clone(),
                score: name.to_owned(),
                kind: kind.to_owned(),
                percent: i32::from(percent),
                n_held: i32::try_from(n_held).map_err(|_| Error::TooLarge { what: "n_held", got: n_held })?,
                correct: answered.correct,
                answer: answered.answer,
            });
        }
    }
    Ok(rows)
}

/// The scores of the reasoning tokens that were fed, without eviction; a live score as it is at the end.
fn of_tokens(
    worker: &Worker<'_>,
    recording: &Recording<'_>,
    policy: &NamedPolicy,
    labels: Option<&Labels>,
) -> Result<Vec<f32>> {
    let decoder = &worker.model.decoder;
    let plan = policy.policy.score.plan(decoder.config().n_layers)?;
    let stream = policy.policy.stream(worker.ask.settings.stream(&recording.trace.problem_id, 0));
    let setup = Setup { stream, labels: labels.cloned(), ..Setup::new(decoder.config().n_layers) };
    let mut score = policy.policy.score.start(&setup)?;
    let mut cache = decoder.cache(Scope::Global, Capacity::Fixed(recording.fed().len()))?;
    let (prompt, rest) = recording.fed().split_at(recording.n_prompt);
    let step = if score.by_single_tokens() { 1 } else { rest.len().max(1) };
    for (tokens, is_prompt) in std::iter::once((prompt, true)).chain(rest.chunks(step).map(|chunk| (chunk, false))) {
        let input = RowInput::next(&cache, tokens.to_vec(), LogitsOf::None);
        let taps = decoder.forward(&[input], &mut [&mut cache], &plan)?.taps;
        score.observe(&Step { chunk: &Chunk::new(&taps, 0..tokens.len()), cache: &cache, prompt: is_prompt })?;
    }
    let all = checked_scores(&*score, &cache)?.swap_remove(0);
    Ok(all[recording.n_prompt..].to_vec())
}
