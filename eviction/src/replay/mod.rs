//! Replay: recorded traces under policies, in minutes where free runs take days.
//!
//! The tokens of a trace are fed one by one under each policy and budget, and only the answer is decoded, so every policy
//! sees the same text. What is measured:
//!
//! | measure | what it says |
//! | --- | --- |
//! | label mass ([`Mass`]) | which share of the tokens that the answer depends on is still held |
//! | answer survival | whether the answer is still right, with the policy's own keys and values and with clean ones |
//! | curves | whether it is right when only the highest tokens of a score are held, or all but them |
//!
//! Survival splits the loss of a policy in three: `full - clean` is what is no longer there to be found, `clean - own` what
//! the missing tokens did to the states of those that stay, and `own - free run` what comes of writing another text.

mod answers;
mod ask;
mod cells;
mod curves;
mod feed;
mod mass;
mod predict;
mod recording;
mod summary;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use epikv_model::Model;
use epikv_model::session::side_by_side;
use epikv_schemas::{EvictionCurve, EvictionReplay, LabelToken, Record, Trace};
use epikv_signals::{Labels, Need};
use serde_json::{Value, json};

pub use self::ask::{Ask, Replay};
pub use self::cells::ReplayCells;
pub use self::mass::Mass;
pub use self::predict::{Prediction, predict};
pub use self::summary::{ReplayGroup, ReplaySummary};

use self::answers::{Answered, Answers};
use self::ask::Worker;
use self::recording::Recording;
use crate::error::{Error, Result};
use crate::experiment::config::Settings;
use crate::experiment::labels::LabelSet;
use crate::experiment::runs::Progress;
use crate::policy::budget::Budget;
use crate::policy::parse::NamedPolicy;

/// Replays traces under all policies that evict.
///
/// # Errors
/// A policy that does not fit the model or lacks its labels, labels of other tokens, a budget without room (unless such
/// traces are to be skipped); or the model fails.
pub fn replay(
    model: &Model,
    traces: &[Trace],
    labels: &[LabelToken],
    ask: Ask<'_>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Replay> {
    let settings = ask.settings;
    let set = LabelSet::of(labels);
    let (policies, budgets) = (settings.ordered_policies()?, settings.ordered_budgets());
    let policies: Vec<NamedPolicy> = policies.into_iter().filter(|policy| policy.policy.has_budget()).collect();
    for policy in &policies {
        policy.fits(model.decoder.config().n_layers)?;
        if policy.policy.score.needs(Need::Labels) && set.is_empty() {
            return Err(Error::NoLabels { policy: policy.name.clone() });
        }
    }
    let important = important(labels);
    let mut out = Replay::default();
    let mut recordings = Vec::new();
    for trace in traces {
        let own = important.get(trace.trace_id.as_str()).cloned();
        match Recording::of(trace, own, model.decoder.config()) {
            Ok(recording) => {
                set.of_problem(&trace.trace_id, recording.fed())?;
                recordings.push(recording);
            }
            Err(why) => out.skipped.push(why.to_string()),
        }
    }
    check(&recordings, &policies, &budgets, settings)?;
    ask.cells.map_or(Ok(()), ReplayCells::begin)?;
    progress(Progress::Planned(recordings.len()));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let identity = model.provenance()?;
    let worker = Worker { model, identity: &identity, set: &set, policies: &policies, budgets: &budgets, ask };
    let results = side_by_side(&model.decoder, recordings.len(), || -> Result<()> {
        while let Some((at, recording)) = take(&next, &recordings) {
            let one = worker.run(recording)?;
            // Nothing panics while it holds the lock.
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(at, one);
            progress(Progress::Done);
        }
        Ok(())
    });
    results.into_iter().collect::<Result<Vec<()>>>()?;
    for (_, one) in done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        out.rows.extend(one.rows);
        out.curves.extend(one.curves);
        out.n_reused += one.n_reused;
    }
    Ok(out)
}

fn take<'r, 't>(next: &AtomicUsize, all: &'r [Recording<'t>]) -> Option<(usize, &'r Recording<'t>)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    all.get(at).map(|recording| (at, recording))
}

/// Positions of important tokens, by trace.
fn important(labels: &[LabelToken]) -> BTreeMap<&str, BTreeSet<u32>> {
    let mut all: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for token in labels {
        let own = all.entry(&token.trace_id).or_default();
        if let (Some(true), Ok(pos)) = (token.important, u32::try_from(token.pos)) {
            own.insert(pos);
        }
    }
    all
}

/// Refuses budgets that cannot hold what some policy protects.
fn check(
    recordings: &[Recording<'_>],
    policies: &[NamedPolicy],
    budgets: &[Budget],
    settings: &Settings,
) -> Result<()> {
    for recording in recordings.iter().filter(|_| !settings.skip_infeasible) {
        for (policy, budget) in policies.iter().flat_map(|policy| budgets.iter().map(move |budget| (policy, budget))) {
            budget.limits_of(recording.lengths(), &policy.policy, settings.matched)?;
        }
    }
    Ok(())
}

/// What came of one trace.
#[derive(Default)]
struct OfTrace {
    rows: Vec<EvictionReplay>,
    curves: Vec<EvictionCurve>,
    n_reused: usize,
}

impl Worker<'_> {
    /// The rows of one trace, in order of policies and budgets; those that are kept already are not made again.
    fn run(&self, recording: &Recording<'_>) -> Result<OfTrace> {
        let labels = self.set.of_problem(&recording.trace.trace_id, recording.fed())?;
        let about = self.about(recording, labels.as_ref());
        let cell = |policy: &NamedPolicy, budget: Budget| {
            json!([about, policy.name, policy.policy.to_string(), budget.to_string()])
        };
        let curve = |score: &str| json!([about, score, self.ask.percents]);
        let grid: Vec<(&NamedPolicy, Budget)> =
            self.policies.iter().flat_map(|policy| self.budgets.iter().map(move |budget| (policy, *budget))).collect();
        let mut rows: Vec<Option<EvictionReplay>> = grid
            .iter()
            .map(|(policy, budget)| self.ask.cells?.find::<EvictionReplay>(&cell(policy, *budget))?.pop())
            .collect();
        let scores = curves::of_scores(self);
        let mut curves: Vec<Option<Vec<EvictionCurve>>> =
            scores.iter().map(|(name, _)| self.ask.cells?.find(&curve(name))).collect();
        let n_reused = rows.iter().flatten().count() + curves.iter().flatten().map(Vec::len).sum::<usize>();
        if rows.iter().any(Option::is_none) || curves.iter().any(Option::is_none) {
            let answers = Answers::new(self.model, recording, self.ask.answer_tokens)?;
            let full = answers.full()?;
            let wanted: Vec<_> = grid.iter().zip(&rows).filter(|(_, row)| row.is_none()).map(|(one, _)| *one).collect();
            feed::feed(self, recording, labels.as_ref(), &wanted, |fed| {
                let (own, clean) = match &fed.cache {
                    Some(cache) => (Some(answers.own(cache)?), answers.clean(cache)?),
                    None => (None, None),
                };
                let made = row(recording, &fed, &full, clean, own)?;
                self.keep(&cell(fed.policy, fed.budget), std::slice::from_ref(&made))?;
                let place = grid.iter().position(|(p, budget)| p.name == fed.policy.name && *budget == fed.budget);
                if let Some(place) = place {
                    rows[place] = Some(made);
                }
                Ok(())
            })?;
            for ((name, policy), slot) in scores.iter().zip(&mut curves).filter(|(_, slot)| slot.is_none()) {
                let made = curves::curves(self, recording, &answers, labels.as_ref(), (name, policy))?;
                self.keep(&curve(name), &made)?;
                *slot = Some(made);
            }
        }
        let curves = curves.into_iter().flatten().flatten().collect();
        Ok(OfTrace { rows: rows.into_iter().flatten().collect(), curves, n_reused })
    }

    fn keep<R: Record>(&self, of: &Value, rows: &[R]) -> Result<()> {
        self.ask.cells.map_or(Ok(()), |cells| cells.keep(of, rows))
    }

    /// What determines every row of a trace besides policy and budget.
    fn about(&self, recording: &Recording<'_>, labels: Option<&Labels>) -> Value {
        let (trace, settings) = (recording.trace, self.ask.settings);
        json!({
            "table": format!("{} {}", EvictionReplay::TABLE.id(), env!("CARGO_PKG_VERSION")),
            "model": self.identity,
            "trace": trace.trace_id,
            "problem": [&trace.problem_id, &trace.dataset, &trace.problem],
            "gold": trace.gold,
            "tokens": recording.tokens,
            "n_prompt": recording.n_prompt,
            "n_tokens": trace.token_ids.len(),
            "labels": labels.map(|labels| labels.to_vec()),
            "important": recording.important,
            "match": settings.matched.to_string(),
            "seed": settings.seed,
            "skip_infeasible": settings.skip_infeasible,
            "answer_tokens": self.ask.answer_tokens,
        })
    }
}

/// A row of the file.
fn row(
    recording: &Recording<'_>,
    fed: &feed::Fed<'_>,
    full: &Answered,
    clean: Option<Answered>,
    own: Option<Answered>,
) -> Result<EvictionReplay> {
    let column = |what, n: usize| i32::try_from(n).map_err(|_| Error::TooLarge { what, got: n });
    let mass = fed.mass.as_ref();
    let certificate = fed.certificate.as_ref();
    Ok(EvictionReplay {
        trace_id: recording.trace.trace_id.clone(),
        problem_id: recording.trace.problem_id.clone(),
        dataset: recording.trace.dataset.clone(),
        policy: fed.policy.name.clone(),
        budget: fed.budget.to_string(),
        composition: fed.policy.policy.to_string(),
        budget_tokens: fed.tokens.map(|n| column("budget_tokens", n)).transpose()?,
        n_prompt: recording.trace.n_prompt,
        n_fed: column("n_fed", recording.fed().len() - recording.n_prompt)?,
        n_important: mass.map(|mass| column("n_important", mass.n_important())).transpose()?,
        mass_end: mass.and_then(Mass::end),
        gain_end: mass.and_then(Mass::gain_end),
        mass_mean: mass.and_then(Mass::mean),
        gain_mean: mass.and_then(Mass::gain_mean),
        n_evicted: certificate.map(|c| column("n_evicted", c.n_evicted)).transpose()?,
        certificate: certificate.map(crate::engine::certificate::Certificate::holds),
        full_correct: full.correct,
        clean_correct: clean.as_ref().and_then(|one| one.correct),
        own_correct: own.as_ref().and_then(|one| one.correct),
        full_answer: full.answer.clone(),
        clean_answer: clean.and_then(|one| one.answer),
        own_answer: own.and_then(|one| one.answer),
    })
}
