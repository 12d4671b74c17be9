//! The experiment: every problem under every policy and budget, with the generation without eviction first.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use epikv_model::Model;
use epikv_model::session::Ledger;
use epikv_schemas::{EvictionRun, EvictionTiming};
use epikv_tasks::problem::Problem;
use epikv_tasks::prompt::Prompt;

use crate::budget::{Budget, Lengths, Limits};
use crate::config::Settings;
use crate::decode::{Decoded, Generation, decode_all};
use crate::error::{Error, Result};
use crate::labels::LabelSet;
use crate::parse::NamedPolicy;
use crate::rows::{Cell, Writer};
use crate::score::Score;

/// How far the experiment is.
#[derive(Debug, Clone, Copy)]
pub enum Progress {
    /// So many generations will be made.
    Planned(usize),
    /// One was made, or turned out not to be needed.
    Done,
}

/// Everything that came of an experiment.
#[derive(Debug, Default)]
pub struct Runs {
    /// One row a generation, or a generation that could not be.
    pub rows: Vec<EvictionRun>,
    /// What each generation cost.
    pub timings: Vec<EvictionTiming>,
    /// Problems that could not be run, with the reason. Infeasible ones are no failures: they were asked for.
    pub failures: Vec<String>,
    /// Tokens that went through the model.
    pub ledger: Ledger,
    /// Elapsed time of each policy and budget. The times of its generations add up to more where threads share it.
    pub elapsed: Vec<(String, Option<String>, Duration)>,
    /// Names of the policies in the order in which they ran, and of the budgets.
    pub order: (Vec<String>, Vec<String>),
}

/// A problem with its prompt, or why it has none that can be run.
pub(crate) struct Prepared<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) prompt: Prompt,
    pub(crate) refused: Option<String>,
    /// The generation without eviction.
    pub(crate) full: Option<Decoded>,
}

/// Runs the experiment.
///
/// # Errors
/// Before anything is decoded: a policy that does not fit the model or lacks its labels, labels of other prompts, a
/// budget without room for some problems (unless they are to be skipped). While decoding: the model fails.
pub fn evict(
    model: &Model,
    problems: &[Problem],
    labels: Option<&LabelSet>,
    settings: &Settings,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Runs> {
    let (policies, budgets) = (settings.ordered_policies()?, settings.ordered_budgets());
    for policy in &policies {
        policy.policy.score.plan(model.decoder.config().n_layers)?;
        if policy.policy.score == Score::Labels && labels.is_none_or(LabelSet::is_empty) {
            return Err(Error::NoLabels { policy: policy.name.clone() });
        }
    }
    let mut prepared = prepare(model, problems, settings)?;
    let mut experiment = Experiment { model, settings, labels, progress, runs: Runs::default() };
    let evicting: Vec<&NamedPolicy> = policies.iter().filter(|p| p.policy.evicts()).collect();
    let others: Vec<&NamedPolicy> = policies.iter().filter(|p| !p.policy.evicts()).collect();
    experiment.runs.order =
        (policies.iter().map(|p| p.name.clone()).collect(), budgets.iter().map(ToString::to_string).collect());
    for item in &prepared {
        if let Some(labels) = labels {
            labels.of_problem(&item.problem.id, &item.prompt.ids)?;
        }
        experiment.runs.failures.extend(item.refused.clone());
    }
    for budget in budgets.iter().filter(|budget| !budget.needs_full()) {
        experiment.feasible(&prepared, &evicting, *budget)?;
    }
    progress(Progress::Planned(prepared.len() * (others.len() + evicting.len() * budgets.len())));
    for policy in others {
        let decoded = experiment.run(&prepared, policy, None, &vec![true; prepared.len()])?;
        if policy.name == crate::registry::FULL {
            for (item, decoded) in prepared.iter_mut().zip(decoded) {
                item.full = decoded;
            }
        }
    }
    let feasible = budgets.iter().map(|budget| experiment.feasible(&prepared, &evicting, *budget));
    let feasible = feasible.collect::<Result<Vec<_>>>()?;
    for (budget, feasible) in budgets.iter().zip(&feasible) {
        for policy in &evicting {
            experiment.run(&prepared, policy, Some(*budget), feasible)?;
        }
    }
    Ok(experiment.runs)
}

fn prepare<'p>(model: &Model, problems: &'p [Problem], settings: &Settings) -> Result<Vec<Prepared<'p>>> {
    let max_positions = model.decoder.config().max_positions;
    let one = |problem: &'p Problem| {
        let prompt = Prompt::of_problem(&problem.problem, &model.tokenizer, model.chat.as_ref(), &settings.prompt)?;
        let n = prompt.ids.len();
        let refused = (n == 0 || n >= max_positions)
            .then(|| format!("{}: a prompt of {n} tokens, the model's context is {max_positions}", problem.id));
        Ok(Prepared { problem, prompt, refused, full: None })
    };
    problems.iter().map(one).collect()
}

struct Experiment<'a> {
    model: &'a Model,
    settings: &'a Settings,
    labels: Option<&'a LabelSet>,
    progress: &'a (dyn Fn(Progress) + Sync),
    runs: Runs,
}

impl Experiment<'_> {
    /// Which problems a budget can hold under every policy: one that some policy cannot run is run under none, so that
    /// all are compared on the same problems.
    fn feasible(&self, prepared: &[Prepared<'_>], policies: &[&NamedPolicy], budget: Budget) -> Result<Vec<bool>> {
        let (mut all, mut worst, mut needed) = (Vec::new(), None, 0);
        for item in prepared {
            let mut holds = true;
            for policy in policies.iter().filter(|_| item.can_run(budget)) {
                match budget.limits(item.lengths(), policy.policy.protect) {
                    Ok(_) => {}
                    Err(Error::Infeasible { smallest, .. }) => {
                        holds = false;
                        needed = needed.max(smallest);
                        worst.get_or_insert_with(|| (policy.name.clone(), item.problem.id.clone()));
                    }
                    Err(error) => return Err(error),
                }
            }
            all.push(holds);
        }
        match worst {
            Some((policy, problem)) if !self.settings.skip_infeasible => Err(Error::InfeasibleProblems {
                budget,
                policy,
                n_infeasible: all.iter().filter(|holds| !**holds).count(),
                n_problems: prepared.len(),
                problem,
                smallest: needed,
            }),
            _ => Ok(all),
        }
    }

    /// All problems under one policy and budget: rows for all of them, and what was decoded.
    fn run(
        &mut self,
        prepared: &[Prepared<'_>],
        policy: &NamedPolicy,
        budget: Option<Budget>,
        feasible: &[bool],
    ) -> Result<Vec<Option<Decoded>>> {
        let stop_ids = self.model.stop_ids();
        let (mut jobs, mut places, mut cells) = (Vec::new(), Vec::new(), Vec::new());
        for (place, item) in prepared.iter().enumerate() {
            let tokens = budget.filter(|b| item.can_run(*b)).map(|b| b.tokens(item.lengths())).transpose()?;
            cells.push(Cell { budget, tokens, refused: item.refused.clone(), infeasible: !feasible[place] });
            let cell = &mut cells[place];
            let mut replayed = None;
            if policy.policy.score == Score::Labels && cell.refused.is_none() {
                let labels = self.labels.map(|labels| labels.of_problem(&item.problem.id, &item.prompt.ids));
                replayed = labels.transpose()?.flatten();
                if replayed.is_none() {
                    let missing = format!("{}: {} has no labels of it", item.problem.id, policy.name);
                    self.runs.failures.push(missing.clone());
                    cell.refused = Some(missing);
                }
            }
            if cell.infeasible || cell.refused.is_some() || (budget.is_some() && tokens.is_none()) {
                (self.progress)(Progress::Done);
                continue;
            }
            let limits = match tokens {
                Some(tokens) => Limits::new(tokens, item.prompt.ids.len(), policy.policy.protect)?,
                None => Limits::unlimited(item.prompt.ids.len()),
            };
            let generation = Generation {
                prompt: &item.prompt.ids,
                max_new: self.settings.max_new,
                stop_ids: &stop_ids,
                sampling: self.settings.sampling(&item.problem.id),
                stream: self.settings.stream(&item.problem.id),
                labels: replayed,
            };
            jobs.push((limits, generation));
            places.push(place);
        }
        let decoded = Mutex::new(prepared.iter().map(|_| None).collect::<Vec<Option<Decoded>>>());
        let done = |job: usize, one: Decoded| {
            // Nothing panics while it holds the lock.
            decoded.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[places[job]] = Some(one);
            (self.progress)(Progress::Done);
        };
        let started = Instant::now();
        self.runs.ledger += decode_all(&self.model.decoder, &policy.policy, &jobs, self.settings.batch, &done)?;
        let of = (policy.name.clone(), budget.map(|budget| budget.to_string()), started.elapsed());
        self.runs.elapsed.push(of);
        let decoded = decoded.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let writer = Writer { model: self.model, settings: self.settings, policy };
        for ((item, cell), decoded) in prepared.iter().zip(&cells).zip(&decoded) {
            let (row, failure) = writer.row(item, cell, decoded.as_ref())?;
            self.runs.rows.push(row);
            self.runs.failures.extend(failure);
            self.runs.timings.extend(decoded.as_ref().map(|decoded| writer.timing(item, cell, decoded)));
        }
        Ok(decoded)
    }
}

impl Prepared<'_> {
    /// Whether the problem has a prompt that fits, and what a budget refers to.
    fn can_run(&self, budget: Budget) -> bool {
        self.refused.is_none() && (self.full.is_some() || !budget.needs_full())
    }

    fn lengths(&self) -> Lengths {
        let n_generated = self.full.as_ref().map(|full| full.generated.len());
        Lengths { n_prompt: self.prompt.ids.len(), n_generated }
    }
}
