//! Comparisons of problem sets and models, and of layers with difficulty.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use epikv_schemas::{CorrelationsByTrace, read_table};
use epikv_tasks::problem::read_problems;

use crate::beside::between_groups::{BetweenGroups, between_groups};
use crate::beside::difficulty::{self, WithDifficulty, with_difficulty};
use crate::beside::groups::Group;
use crate::error::{InputError, Result};
use crate::study::findings::DatasetFindings;
use crate::study::sample::Sample;
use crate::study::settings::Settings;

/// The groups of other runs of `epikv correlate`, by the names of their folders.
///
/// # Errors
/// If a table cannot be read, or two folders have one name.
pub fn other_groups(folders: &[PathBuf]) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for folder in folders {
        let (rows, _) = read_table::<CorrelationsByTrace>(&folder.join("correlations_by_trace.parquet"))?;
        let run = folder.file_name().map_or_else(|| folder.display().to_string(), |n| n.to_string_lossy().into_owned());
        if groups.iter().any(|group| group.run == run) {
            return Err(InputError::SameName { folder: folder.clone(), name: run }.into());
        }
        groups.extend(Group::of_rows(&run, &rows));
    }
    Ok(groups)
}

/// Level of each problem in a file of problems, as a number.
///
/// # Errors
/// If the file cannot be read, a level is no number, or there is none.
pub fn levels(path: &Path) -> Result<BTreeMap<String, f64>> {
    let mut levels = BTreeMap::new();
    for problem in read_problems(path).map_err(InputError::from)? {
        let Some(level) = problem.level else { continue };
        // `5` and `Level 5`.
        match level.rsplit(' ').next().and_then(|last| last.parse::<f64>().ok()).filter(|level| level.is_finite()) {
            Some(number) => drop(levels.insert(problem.id, number)),
            None => return Err(InputError::Level { path: path.to_owned(), problem: problem.id, level }.into()),
        }
    }
    if levels.is_empty() {
        return Err(InputError::NoLevels { path: path.to_owned() }.into());
    }
    Ok(levels)
}

/// What problem sets, models and difficulty do to the coefficients.
pub struct Between {
    /// Layers against difficulty.
    pub difficulty: Vec<WithDifficulty>,
    /// Problem sets against each other.
    pub groups: BetweenGroups,
    what: &'static str,
}

impl Between {
    /// Compares the problem sets of a study with each other and with those of other runs.
    pub fn new(
        model: &str,
        found: &[DatasetFindings],
        samples: &[Sample],
        others: Vec<Group>,
        levels: Option<&BTreeMap<String, f64>>,
        settings: &Settings,
    ) -> Self {
        let by_trace: BTreeMap<&str, f64> = samples.iter().filter_map(|s| difficulty_of(s, levels)).collect();
        let of = |dataset: &DatasetFindings| {
            let own = dataset.trace_ids.iter().map(|id| by_trace.get(id.as_str()).copied());
            let group = Group::of_study(model, dataset, settings.window);
            with_difficulty(&group, &dataset.problems, &own.collect::<Vec<_>>(), settings)
        };
        let own = found.iter().filter(|dataset| !dataset.is_pooled);
        let groups = own.map(|dataset| Group::of_study(model, dataset, settings.window)).chain(others);
        Self {
            difficulty: found.iter().flat_map(of).collect(),
            groups: between_groups(&groups.collect::<Vec<_>>(), settings),
            what: match levels {
                Some(_) => "the level of the problem",
                None => "the number of tokens that the trace generated, which also makes its coefficients more exact",
            },
        }
    }

    /// What the page says.
    pub fn markdown(&self, settings: &Settings) -> [String; 2] {
        [difficulty::markdown(&self.difficulty, self.what, settings), self.groups.markdown(settings)]
    }
}

/// Trace and difficulty; `None` where the level is not known.
fn difficulty_of<'s>(sample: &'s Sample, levels: Option<&BTreeMap<String, f64>>) -> Option<(&'s str, f64)> {
    let recording = &sample.recording;
    let difficulty = match levels {
        Some(levels) => *levels.get(&sample.problem_id)?,
        None => (recording.token_ids.len() - recording.n_prompt) as f64,
    };
    Some((&recording.trace_id, difficulty))
}
