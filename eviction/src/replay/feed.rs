//! The tokens of a trace, fed one by one under policies and budgets.
//!
//! Policies that record the same tensors are rows of one pass and share every read of the weights. Nothing is chosen
//! here, so no logits are made.

use std::time::Duration;

use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::RowCache;
use epikv_model::plan::{ReadPlan, StepPlan};
use epikv_model::taps::ProbePlan;
use epikv_signals::{Chunk, Labels};

use super::ask::Worker;
use super::mass::Mass;
use super::recording::Recording;
use crate::engine::certificate::Certificate;
use crate::engine::generation::Generation;
use crate::engine::running::Running;
use crate::error::{Error, Result};
use crate::policy::budget::Budget;
use crate::policy::limits::Limits;
use crate::policy::parse::NamedPolicy;

/// A trace that was fed under a policy and a budget.
pub(super) struct Fed<'a> {
    pub(super) policy: &'a NamedPolicy,
    pub(super) budget: Budget,
    /// The budget in tokens.
    pub(super) tokens: Option<usize>,
    /// What is held before the last token; `None` where the policy could not run.
    pub(super) cache: Option<RowCache>,
    pub(super) certificate: Option<Certificate>,
    /// `None` where nothing was labelled.
    pub(super) mass: Option<Mass>,
}

/// A policy and budget that the trace is being fed under: a row of the pass.
struct Feeding<'a> {
    policy: &'a NamedPolicy,
    budget: Budget,
    limits: Limits,
    cache: RowCache,
    work: Running,
    mass: Option<Mass>,
}

/// Feeds a trace under some policies and budgets; `done` is told of each as it ends.
pub(super) fn feed<'a>(
    worker: &Worker<'a>,
    recording: &Recording<'_>,
    labels: Option<&Labels>,
    wanted: &[(&'a NamedPolicy, Budget)],
    mut done: impl FnMut(Fed<'a>) -> Result<()>,
) -> Result<()> {
    let (decoder, settings) = (&worker.model.decoder, worker.ask.settings);
    let n_layers = decoder.config().n_layers;
    let mut groups: Vec<(ProbePlan, Vec<Feeding<'a>>)> = Vec::new();
    for &(policy, budget) in wanted {
        let limits = match budget.limits_of(recording.lengths(), &policy.policy, settings.matched) {
            Ok(limits) => limits,
            Err(Error::Infeasible { .. }) if settings.skip_infeasible => {
                done(Fed { policy, budget, tokens: None, cache: None, certificate: None, mass: None })?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let generation = Generation {
            prompt: &recording.tokens[..recording.n_prompt],
            max_new: recording.fed().len() - recording.n_prompt,
            stop_ids: &[],
            sampling: epikv_model::sampler::Sampling::Greedy,
            stream: settings.stream(&recording.trace.problem_id, 0),
            labels: labels.cloned(),
        };
        let (cache, mut work) = Running::start(decoder, &policy.policy, &limits, &generation)?;
        recording.fed()[recording.n_prompt..].iter().for_each(|&token| work.chosen(token));
        let mass = recording.important.as_ref().map(|_| Mass::default());
        let row = Feeding { policy, budget, limits, cache, work, mass };
        let plan = policy.policy.score.plan(n_layers)?;
        match groups.iter_mut().find(|(known, _)| *known == plan) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((plan, vec![row])),
        }
    }
    for (plan, mut rows) in groups {
        while !rows.is_empty() {
            // The rows of one pass hold logits of none, so a batch costs its caches alone.
            let mut batch: Vec<Feeding<'a>> = rows.drain(..settings.batch.clamp(1, rows.len())).collect();
            feed_rows(worker, recording, &plan, &mut batch)?;
            for row in batch {
                done(Fed {
                    policy: row.policy,
                    budget: row.budget,
                    tokens: Some(row.limits.tokens()),
                    certificate: Some(*row.work.certificate()),
                    cache: Some(row.cache),
                    mass: row.mass,
                })?;
            }
        }
    }
    Ok(())
}

fn feed_rows(worker: &Worker<'_>, recording: &Recording<'_>, plan: &ProbePlan, rows: &mut [Feeding<'_>]) -> Result<()> {
    let decoder = &worker.model.decoder;
    let (prompt, rest) = recording.fed().split_at(recording.n_prompt);
    for tokens in std::iter::once(prompt).chain(rest.chunks(1)) {
        let inputs: Vec<RowInput> =
            rows.iter().map(|row| RowInput::next(&row.cache, tokens.to_vec(), LogitsOf::None)).collect();
        let reads = rows.iter().map(|row| Ok(row.work.read_plan(&row.cache)?.unwrap_or_default()));
        let read: Vec<ReadPlan> = reads.collect::<Result<_>>()?;
        let mut caches: Vec<&mut RowCache> = rows.iter_mut().map(|row| &mut row.cache).collect();
        let output = decoder.forward(&inputs, &mut caches, StepPlan { probe: plan, read: &read })?;
        for (at, row) in rows.iter_mut().enumerate() {
            let own = at * tokens.len()..(at + 1) * tokens.len();
            let chunk = Chunk::new(&output.taps, own).in_row(at);
            row.work.after_step(decoder, &mut row.cache, &chunk, (output.n_read[at], Duration::ZERO))?;
            if let (Some(mass), Some(important)) = (&mut row.mass, &recording.important) {
                mass.note(&row.cache, row.work.protected(), important);
            }
        }
    }
    Ok(())
}
