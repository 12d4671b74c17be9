//! The experiment: every problem under every policy, budget and sample, with the generation without eviction first.

pub(crate) mod cells;
pub(crate) mod config;
pub(crate) mod declared;
mod keeper;
pub(crate) mod labels;
pub(crate) mod outcome;
mod prepared;
pub(crate) mod rows;
pub(crate) mod runs;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use epikv_model::Model;
use epikv_model::cache::Capacity;
use epikv_signals::Need;
use epikv_tasks::problem::Problem;
use serde_json::{Value, json};

use crate::engine::decode::decode_all;
use crate::engine::generation::Generation;
use crate::engine::running::fresh_cache;
use crate::error::{Error, Result};
use crate::experiment::cells::{Cells, Finished, hash};
use crate::experiment::config::Settings;
use crate::experiment::keeper::{Ended, Keeper};
use crate::experiment::labels::LabelSet;
use crate::experiment::prepared::{Place, Prepared, places, prepare};
use crate::experiment::rows::{Planned, Writer};
use crate::experiment::runs::{Progress, Runs};
use crate::policy::budget::Budget;
use crate::policy::limits::Limits;
use crate::policy::parse::NamedPolicy;

/// The table as the hash of a cell knows it. It is raised when columns that existed change their meaning: a new column that
/// may be null leaves finished cells as they are.
const TABLE: &str = "eviction_runs/2.1";

/// Checks all that can be checked before anything is decoded, as [`evict`] does before it changes anything in a folder.
///
/// # Errors
/// A policy that does not fit the model or lacks its labels, labels of other prompts, a signal that cannot be recorded, a
/// budget without room for some problems (unless they are to be skipped).
pub fn check(model: &Model, problems: &[Problem], labels: Option<&LabelSet>, settings: &Settings) -> Result<()> {
    checked(model, problems, labels, settings).map(drop)
}

/// Runs the experiment; `cells` keeps what is finished, so that it need not be done again.
///
/// # Errors
/// Before anything is decoded, as [`check`]. While decoding: the model fails, a cell cannot be kept, one that is there was
/// made from something else, or a budget that depends on what is generated has no room.
pub fn evict(
    model: &Model,
    problems: &[Problem],
    labels: Option<&LabelSet>,
    settings: &Settings,
    cells: Option<&Cells>,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Runs> {
    let mut prepared = checked(model, problems, labels, settings)?;
    if let Some(cells) = cells {
        cells.begin()?;
    }
    let (policies, budgets) = (settings.ordered_policies()?, settings.ordered_budgets());
    let (evicting, others): (Vec<_>, Vec<_>) = policies.iter().partition(|policy| policy.policy.has_budget());
    let identity = model.provenance()?;
    let runs = Runs { failures: prepared.iter().filter_map(|item| item.refused.clone()).collect(), ..Runs::default() };
    let mut experiment = Experiment { model, identity, settings, labels, cells, progress, runs };
    let n_groups = others.len() + evicting.len() * budgets.len();
    progress(Progress::Planned(prepared.len() * settings.samples as usize * n_groups));
    for policy in others {
        let generated = experiment.run(&prepared, policy, None, &BTreeMap::new())?;
        if policy.name == crate::policy::registry::FULL {
            for ((place, sample), tokens) in generated {
                let cell = experiment.cell(&prepared[place], policy, None, sample)?.hash;
                prepared[place].full.insert(sample, tokens);
                prepared[place].full_cells.insert(sample, cell);
            }
        }
    }
    let feasible = budgets.iter().map(|budget| feasible(settings, &prepared, &evicting, *budget));
    let feasible = feasible.collect::<Result<Vec<_>>>()?;
    for (budget, feasible) in budgets.iter().zip(&feasible) {
        for policy in &evicting {
            experiment.run(&prepared, policy, Some(*budget), feasible)?;
        }
    }
    let mut runs = experiment.runs;
    for other in cells.map(|cells| cells.others(&runs.rows)).unwrap_or_default() {
        runs.rows.push(other.run);
        runs.timings.extend(other.timing);
    }
    Ok(runs)
}

/// The problems with their prompts, after everything that can be checked before the first token.
fn checked<'p>(
    model: &Model,
    problems: &'p [Problem],
    labels: Option<&LabelSet>,
    settings: &Settings,
) -> Result<Vec<Prepared<'p>>> {
    let n_layers = model.decoder.config().n_layers;
    let policies = settings.ordered_policies()?;
    for policy in &policies {
        policy.fits(n_layers)?;
        let stream = settings.stream("", 0);
        fresh_cache(&model.decoder, &policy.policy, Capacity::Fixed(1), stream)?;
        if policy.policy.score.needs(Need::Labels) && labels.is_none_or(LabelSet::is_empty) {
            return Err(Error::NoLabels { policy: policy.name.clone() });
        }
    }
    settings.recorded(n_layers)?;
    let prepared = prepare(model, problems, settings)?;
    for item in &prepared {
        labels.map(|labels| labels.of_problem(&item.problem.id, &item.prompt.ids)).transpose()?;
    }
    let evicting: Vec<&NamedPolicy> = policies.iter().filter(|policy| policy.policy.has_budget()).collect();
    for budget in settings.ordered_budgets().into_iter().filter(|budget| !budget.needs_full()) {
        feasible(settings, &prepared, &evicting, budget)?;
    }
    Ok(prepared)
}

/// Which problems fit a budget under every policy: if one policy cannot fit a problem, every policy skips it, so that all are
/// compared on the same problems.
fn feasible(
    settings: &Settings,
    prepared: &[Prepared<'_>],
    policies: &[&NamedPolicy],
    budget: Budget,
) -> Result<BTreeMap<Place, bool>> {
    let (mut all, mut worst, mut needed) = (BTreeMap::new(), None, 0);
    for (place, sample) in places(settings, prepared) {
        let item = &prepared[place];
        let mut holds = true;
        for policy in policies.iter().filter(|_| item.can_run(budget, sample)) {
            match budget.limits_of(item.lengths(sample), &policy.policy, settings.matched) {
                Ok(_) => {}
                Err(Error::Infeasible { smallest, .. }) => {
                    holds = false;
                    needed = needed.max(smallest);
                    worst.get_or_insert_with(|| (policy.name.clone(), item.problem.id.clone()));
                }
                Err(error) => return Err(error),
            }
        }
        all.insert((place, sample), holds);
    }
    match worst {
        Some((policy, problem)) if !settings.skip_infeasible => {
            let short = all.iter().filter(|(_, holds)| !**holds).map(|((place, _), _)| *place);
            Err(Error::InfeasibleProblems {
                budget: budget.to_string(),
                policy,
                n_infeasible: short.collect::<std::collections::BTreeSet<_>>().len(),
                n_problems: prepared.len(),
                problem,
                smallest: needed,
            })
        }
        _ => Ok(all),
    }
}

struct Experiment<'a> {
    model: &'a Model,
    /// What identifies the computation.
    identity: Value,
    settings: &'a Settings,
    labels: Option<&'a LabelSet>,
    cells: Option<&'a Cells>,
    progress: &'a (dyn Fn(Progress) + Sync),
    runs: Runs,
}

/// What one policy and budget take.
#[derive(Default)]
struct Work<'p> {
    /// What is decoded.
    jobs: Vec<(Limits, Generation<'p>)>,
    /// By job: the place of the problem, and the cell.
    cells: Vec<(usize, Planned)>,
    /// What has ended without.
    ended: Vec<Ended>,
}

impl Experiment<'_> {
    /// All problems and samples under one policy and budget: rows for all of them, and the tokens that were generated.
    fn run(
        &mut self,
        prepared: &[Prepared<'_>],
        policy: &NamedPolicy,
        budget: Option<Budget>,
        feasible: &BTreeMap<Place, bool>,
    ) -> Result<BTreeMap<Place, Vec<u32>>> {
        let writer = Writer { model: self.model, settings: self.settings, policy };
        let stop_ids = self.model.stop_ids();
        let mut work = Work::default();
        for (place, sample) in places(self.settings, prepared) {
            let mut cell = self.cell(&prepared[place], policy, budget, sample)?;
            cell.infeasible = feasible.get(&(place, sample)) == Some(&false);
            self.add(&mut work, &writer, (place, &prepared[place]), cell, &stop_ids)?;
        }
        let Work { jobs, cells, mut ended } = work;
        let fresh = Mutex::default();
        let keeper = Keeper {
            writer: &writer,
            prepared,
            cells: &cells,
            store: self.cells,
            fresh: &fresh,
            progress: self.progress,
        };
        self.runs.ledger += decode_all(&self.model.decoder, &policy.policy, &jobs, self.settings.batch, &keeper)?;
        ended.extend(fresh.into_inner().unwrap_or_else(PoisonError::into_inner));
        // As they ended is as chance would have it.
        ended.sort_by_key(|(place, ..)| *place);
        let mut generated = BTreeMap::new();
        for (place, Finished { run, timing }, failure) in ended {
            let tokens = run.token_ids.iter().flatten().map(|&id| id as u32);
            if run.token_ids.is_some() {
                generated.insert(place, tokens.collect());
            }
            self.runs.failures.extend(failure);
            self.runs.rows.push(run);
            self.runs.timings.extend(timing);
        }
        Ok(generated)
    }

    /// Adds a cell to what is to be decoded, or to what has ended without: it cannot be run, or was run before.
    fn add<'p>(
        &mut self,
        work: &mut Work<'p>,
        writer: &Writer<'_>,
        (place, item): (usize, &'p Prepared<'_>),
        mut cell: Planned,
        stop_ids: &'p [u32],
    ) -> Result<()> {
        let (policy, sample) = (writer.policy, cell.sample);
        let mut labels = None;
        if policy.policy.score.needs(Need::Labels) && cell.refused.is_none() {
            let found = self.labels.map(|labels| labels.of_problem(&item.problem.id, &item.prompt.ids));
            labels = found.transpose()?.flatten();
            if labels.is_none() {
                let missing = format!("{}: {} has no labels of it", item.problem.id, policy.name);
                self.runs.failures.push(missing.clone());
                cell.refused = Some(missing);
            }
        }
        if cell.infeasible || cell.refused.is_some() || (cell.budget.is_some() && cell.tokens.is_none()) {
            let (run, failure) = writer.row(item, &cell, None)?;
            work.ended.push(((place, sample), Finished { run, timing: None }, failure));
            (self.progress)(Progress::Done);
            return Ok(());
        }
        let key = (item.problem.id.clone(), policy.name.clone(), cell.budget.map(|b| b.to_string()), sample as i32);
        if let Some(found) = self.cells.map(|cells| cells.find(&key, &cell.hash)).transpose()?.flatten() {
            work.ended.push(((place, sample), found.clone(), None));
            self.runs.n_resumed += 1;
            (self.progress)(Progress::Done);
            return Ok(());
        }
        let limits = match cell.tokens {
            Some(tokens) => Limits::new(tokens, item.prompt.ids.len(), policy.policy.protect)?,
            None => Limits::unlimited(item.prompt.ids.len()),
        };
        let generation = Generation {
            prompt: &item.prompt.ids,
            max_new: self.settings.max_new,
            stop_ids,
            sampling: self.settings.sampling(&item.problem.id, sample),
            stream: self.settings.stream(&item.problem.id, sample),
            labels,
        };
        work.jobs.push((limits, generation));
        work.cells.push((place, cell));
        Ok(())
    }

    /// What is to be run, with the hash of everything that determines what comes of it.
    fn cell(&self, item: &Prepared<'_>, policy: &NamedPolicy, budget: Option<Budget>, sample: u32) -> Result<Planned> {
        let can_run = |budget: &Budget| item.can_run(*budget, sample);
        let asked = budget.filter(can_run).map(|b| b.tokens(item.lengths(sample))).transpose()?;
        let tokens = asked.and_then(|tokens| self.settings.matched.after_eviction(tokens, policy.policy.trigger));
        let labels = policy
            .policy
            .score
            .needs(Need::Labels)
            .then(|| self.labels.and_then(|l| l.of_problem(&item.problem.id, &item.prompt.ids).ok().flatten()))
            .flatten();
        let settings = self.settings;
        let of = json!({
            "table": format!("{TABLE} {}", env!("CARGO_PKG_VERSION")),
            "model": self.identity,
            "problem": item.problem.id,
            "dataset": item.problem.dataset,
            "gold": item.problem.gold,
            "prompt": item.prompt.ids,
            "policy": policy.name,
            "composition": policy.policy.to_string(),
            "labels": labels.map(|labels| labels.to_vec()),
            "budget": budget.map(|budget| budget.to_string()),
            "tokens": tokens,
            "max_new": settings.max_new,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": settings.seed,
            "sample": sample,
        });
        Ok(Planned { hash: hash(&of), sample, budget, tokens, refused: item.refused.clone(), infeasible: false })
    }
}
