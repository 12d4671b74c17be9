//! Settings of an eviction run: as typed, then checked.

use std::collections::BTreeSet;

use epikv_model::sampler::{RandomStream, Sampling, stream_number};
use epikv_schemas::EvictionRun;
use epikv_signals::Need;
use epikv_tasks::prompt::PromptOptions;
use serde_json::{Value, json};

use crate::engine::generation::Recorded;
use crate::error::{Error, Result};
use crate::policy::budget::{Budget, Match};
use crate::policy::parse::NamedPolicy;
use crate::policy::registry::{FULL, POLICIES, find};

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Policies; the generation without eviction is added where it is missing, since all others are compared with it.
    pub policies: Vec<NamedPolicy>,
    /// Budgets, for policies that evict.
    pub budgets: Vec<Budget>,
    /// Most new tokens of a generation.
    pub max_new: usize,
    /// Sampling temperature; 0 is greedy.
    pub temperature: f32,
    /// Share of probability that sampling draws from.
    pub top_p: f32,
    /// Samples of each problem. Each sample has its own random numbers.
    pub samples: u32,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Only the problems whose index leaves the first number when divided by the second: a shard of several.
    pub shard: Option<(usize, usize)>,
    /// Runs of each policy that draws, each with draws of its own.
    pub eviction_seeds: u32,
    /// Which resident size the budget is.
    pub matched: Match,
    /// Signals to record while tokens are evicted, by name.
    pub signals: Vec<String>,
    /// Whether problems that a budget cannot hold are left out instead of ending the run.
    pub skip_infeasible: bool,
    /// How problems become prompts.
    pub prompt: PromptOptions,
    /// Rows that run together. Changes no result.
    pub batch: usize,
    /// Threads of the run, for the record. Changes no result.
    pub threads: usize,
    /// Processor and system, for the record.
    pub machine: String,
}

impl Settings {
    /// Greedy runs of some policies at some budgets, with the usual prompts.
    pub fn new(policies: Vec<NamedPolicy>, budgets: Vec<Budget>) -> Self {
        Self {
            policies,
            budgets,
            max_new: 1024,
            temperature: 0.0,
            top_p: 1.0,
            samples: 1,
            seed: 0,
            shard: None,
            eviction_seeds: 1,
            matched: Match::Steady,
            signals: Vec::new(),
            skip_infeasible: false,
            prompt: PromptOptions::default(),
            batch: 8,
            threads: 1,
            machine: String::new(),
        }
    }

    /// The policies without doubles, the one without eviction first; one that draws, once for each seed.
    ///
    /// # Errors
    /// If the table lacks the row without eviction.
    pub fn ordered_policies(&self) -> Result<Vec<NamedPolicy>> {
        let mut all = vec![NamedPolicy::from(find(FULL)?)];
        for policy in &self.policies {
            let seeds = if policy.policy.draws() { self.eviction_seeds.max(1) } else { 1 };
            for more in 0..seeds {
                // After the largest seed comes 0: any other one will do.
                let seed = policy.policy.seed.wrapping_add(more);
                let policy = if more == 0 { policy.clone() } else { policy.with_seed(seed) };
                if all.iter().all(|other| other.name != policy.name) {
                    all.push(policy);
                }
            }
        }
        Ok(all)
    }

    /// The budgets without doubles.
    pub(crate) fn ordered_budgets(&self) -> Vec<Budget> {
        let mut all = Vec::new();
        for budget in &self.budgets {
            if !all.contains(budget) {
                all.push(*budget);
            }
        }
        all
    }

    /// The keys of everything random in a sample of a problem: the same under every policy.
    pub(crate) fn stream(&self, problem: &str, sample: u32) -> RandomStream {
        RandomStream { seed: self.seed, problem: stream_number(problem), sample }
    }

    pub(crate) fn sampling(&self, problem: &str, sample: u32) -> Sampling {
        Sampling::of(self.temperature, self.top_p, self.stream(problem, sample))
    }

    /// Whether a problem, by its index, belongs to the shard.
    pub(crate) fn is_of_shard(&self, index: usize) -> bool {
        self.shard.is_none_or(|(own, of)| index % of.max(1) == own)
    }

    /// The signals to record, in a model of so many layers.
    pub(crate) fn recorded(&self, n_layers: usize) -> Result<Vec<Recorded>> {
        let mut all = Vec::new();
        for name in &self.signals {
            let named = |error: epikv_signals::Error| Error::from(error).of("--record-signals", name);
            let found = epikv_signals::find(name).and_then(|row| row.all(n_layers)).map_err(named)?;
            if found.is_empty() {
                return Err(Error::LateSignal { signal: name.clone() });
            }
            all.extend(found.into_iter().map(|(layer, signal)| Recorded::new(layer, signal)));
        }
        Ok(all)
    }

    /// What determines the results and is the same for all of them, for the record. The policies, by name and
    /// composition, and the budgets are those of the rows, in order, so that it does not matter how they came there.
    pub fn provenance(&self, rows: &[EvictionRun]) -> Value {
        let policies: BTreeSet<(&str, &str)> =
            rows.iter().map(|row| (row.policy.as_str(), row.composition.as_str())).collect();
        let policies: Vec<Value> =
            policies.into_iter().map(|(name, parts)| json!({ "name": name, "composition": parts })).collect();
        let budgets: BTreeSet<&str> = rows.iter().filter_map(|row| row.budget.as_deref()).collect();
        json!({
            "policies": policies,
            "budgets": budgets,
            "match": self.matched.to_string(),
            "max_new": self.max_new,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "grader_mode": epikv_tasks::trace::GRADER_MODE.name(),
            "prompt_style": self.prompt.style.name(),
            "system": self.prompt.system,
            "instruction": self.prompt.instruction,
            "template_date": self.prompt.render.date,
            "template_variables": self.prompt.render.variables,
        })
    }
}

/// Policies as they are typed, separated by commas; `all` is every row of the table, those that replay labels only
/// `with_labels`, and `all;part=value` every row that evicts with that part replaced.
///
/// # Errors
/// As [`NamedPolicy`]'s `from_str`.
pub fn parse_policies<'t>(texts: impl IntoIterator<Item = &'t str>, with_labels: bool) -> Result<Vec<NamedPolicy>> {
    let mut all = Vec::new();
    for text in texts.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        let rows = || POLICIES.iter().filter(|row| with_labels || !row.policy.score.needs(Need::Labels));
        if text == "all" {
            all.extend(rows().map(NamedPolicy::from));
        } else if let Some(parts) = text.strip_prefix("all;") {
            for row in rows().filter(|row| row.policy.has_budget()) {
                all.push(format!("{};{parts}", row.name).parse()?);
            }
        } else {
            all.push(text.parse()?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_is_always_there_and_first_and_nothing_stands_twice() {
        let policies = parse_policies(["h2o,window", "full,h2o"], false).expect("known");
        let budgets = ["128", "prompt+3", "128"].map(|text| text.parse().expect("a budget"));
        let settings = Settings::new(policies, budgets.to_vec());
        let names: Vec<String> = settings.ordered_policies().expect("rows").into_iter().map(|p| p.name).collect();
        assert_eq!(names, ["full", "h2o", "window"]);
        assert_eq!(settings.ordered_budgets().len(), 2);
    }

    #[test]
    fn every_seed_has_other_ones_after_it() {
        let typed = parse_policies([format!("random;seed={}", u32::MAX).as_str()], false).expect("known");
        let settings = Settings { eviction_seeds: 3, ..Settings::new(typed, Vec::new()) };
        let names: Vec<String> = settings.ordered_policies().expect("rows").into_iter().map(|p| p.name).collect();
        assert_eq!(names, ["full", "random;seed=4294967295", "random", "random;seed=1"]);
    }

    #[test]
    fn all_is_every_row_that_can_run() {
        assert_eq!(parse_policies(["all"], true).expect("rows").len(), POLICIES.len());
        let without = parse_policies(["all"], false).expect("rows");
        assert_eq!(without.len(), POLICIES.len() - 1);
        assert!(parse_policies(["all,h3o"], false).is_err());
        let buffered = parse_policies(["all;trigger=buffer(8)"], true).expect("rows");
        assert_eq!(buffered.len(), POLICIES.iter().filter(|row| row.policy.has_budget()).count());
        assert!(buffered.iter().all(|policy| policy.policy.trigger == crate::policy::Trigger::Buffer(8)));
    }
}
