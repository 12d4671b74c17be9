//! Comparisons of problem sets and models, and of layers with difficulty.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use epikv_analyzer::between_groups::{BetweenGroups, between_groups};
use epikv_analyzer::difficulty::{self, WithDifficulty, with_difficulty};
use epikv_analyzer::groups::Group;
use epikv_analyzer::{DatasetFindings, Pool, Sample, Settings};
use epikv_schemas::{CorrelationsByTrace, Trace, read_table};
use epikv_tasks::problem::read_problems;

use crate::cli::CorrelateArgs;

/// Problem sets that were asked for together, `aime24+aime25`.
pub(super) fn pools(args: &CorrelateArgs) -> Result<Vec<Pool>> {
    let pool = |typed: &String| {
        let members: Vec<String> = typed.split('+').map(|name| name.trim().to_owned()).collect();
        if members.len() < 2 || members.iter().enumerate().any(|(at, name)| members[..at].contains(name)) {
            bail!("--pool {typed}: expected two or more different problem sets, joined by +");
        }
        Ok(Pool { members })
    };
    super::plan::unique(args.pool.iter().map(pool), Pool::name)
}

/// Refuses to pool a problem set that no trace belongs to.
pub(super) fn check_pools(pools: &[Pool], traces: &[Trace]) -> Result<()> {
    let mut known: Vec<&str> = traces.iter().map(|trace| trace.dataset.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    for pool in pools {
        if let Some(name) = pool.members.iter().find(|name| !known.contains(&name.as_str())) {
            bail!("--pool {}: expected problem sets of the traces, {}, got {name}", pool.name(), known.join(", "));
        }
    }
    Ok(())
}

/// The groups of other runs of `epikv correlate`, by the names of their folders.
pub(super) fn other_groups(args: &CorrelateArgs) -> Result<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for folder in &args.against {
        let (rows, _) = read_table::<CorrelationsByTrace>(&folder.join("correlations_by_trace.parquet"))?;
        let run = folder.file_name().map_or_else(|| folder.display().to_string(), |n| n.to_string_lossy().into_owned());
        if groups.iter().any(|group| group.run == run) {
            bail!("--against {}: expected folders of different names, got {run} twice", folder.display());
        }
        groups.extend(Group::of_rows(&run, &rows));
    }
    Ok(groups)
}

/// Level of each problem in a file of problems, as a number.
pub(super) fn levels(args: &CorrelateArgs) -> Result<Option<BTreeMap<String, f64>>> {
    let Some(path) = &args.difficulty else { return Ok(None) };
    let mut levels = BTreeMap::new();
    for problem in read_problems(path)? {
        let Some(level) = problem.level else { continue };
        // `5` and `Level 5`.
        match level.rsplit(' ').next().and_then(|last| last.parse::<f64>().ok()).filter(|level| level.is_finite()) {
            Some(number) => drop(levels.insert(problem.id, number)),
            None => bail!("{}: problem {}: expected a number as level, got {level:?}", path.display(), problem.id),
        }
    }
    if levels.is_empty() {
        bail!("{}: expected problems with a level, got none", path.display());
    }
    Ok(Some(levels))
}

/// What problem sets, models and difficulty do to the coefficients.
pub(super) struct Between {
    pub(super) difficulty: Vec<WithDifficulty>,
    pub(super) groups: BetweenGroups,
    what: &'static str,
}

impl Between {
    /// Compares the problem sets of a study with each other and with those of other runs.
    pub(super) fn new(
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
            with_difficulty(&group, &own.collect::<Vec<_>>(), settings)
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
    pub(super) fn markdown(&self, settings: &Settings) -> [String; 2] {
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
