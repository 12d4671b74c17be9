//! The problems of an experiment with their prompts.

use std::collections::BTreeMap;

use epikv_model::Model;
use epikv_tasks::problem::Problem;
use epikv_tasks::prompt::Prompt;

use crate::error::Result;
use crate::experiment::config::Settings;
use crate::policy::budget::{Budget, Lengths};

/// A problem with its prompt, or why it has none that can be run.
pub(crate) struct Prepared<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) prompt: Prompt,
    pub(crate) refused: Option<String>,
    /// The tokens generated without eviction, by sample.
    pub(crate) full: BTreeMap<u32, Vec<u32>>,
    /// The cells of these generations, by sample.
    pub(crate) full_cells: BTreeMap<u32, String>,
}

impl Prepared<'_> {
    /// Whether the problem has a prompt that fits, and what a budget refers to.
    pub(crate) fn can_run(&self, budget: Budget, sample: u32) -> bool {
        self.refused.is_none() && (self.full.contains_key(&sample) || !budget.needs_full())
    }

    /// The tokens generated without eviction.
    pub(crate) fn full(&self, sample: u32) -> Option<&[u32]> {
        self.full.get(&sample).map(Vec::as_slice)
    }

    pub(crate) fn lengths(&self, sample: u32) -> Lengths {
        Lengths { n_prompt: self.prompt.ids.len(), n_generated: self.full(sample).map(<[u32]>::len) }
    }
}

/// The problems of the shard with their prompts.
pub(crate) fn prepare<'p>(model: &Model, problems: &'p [Problem], settings: &Settings) -> Result<Vec<Prepared<'p>>> {
    let max_positions = model.decoder.config().max_positions;
    let one = |(_, problem): (usize, &'p Problem)| {
        let prompt = Prompt::of_problem(&problem.problem, &model.tokenizer, model.chat.as_ref(), &settings.prompt)?;
        let refused = prompt.refusal(&problem.id, max_positions);
        Ok(Prepared { problem, prompt, refused, full: BTreeMap::new(), full_cells: BTreeMap::new() })
    };
    problems.iter().enumerate().filter(|(index, _)| settings.is_of_shard(*index)).map(one).collect()
}

/// Which problem, by its place, and which sample.
pub(crate) type Place = (usize, u32);

/// All problems with all samples.
pub(crate) fn places(settings: &Settings, prepared: &[Prepared<'_>]) -> Vec<Place> {
    (0..prepared.len()).flat_map(|place| (0..settings.samples).map(move |sample| (place, sample))).collect()
}
