//! The tables of a folder of results, as far as claims read them.

use std::collections::BTreeMap;
use std::path::Path;

use epikv_schemas::{
    AgreementRow, BandSurprisal, CorrelationsByTrace, DifficultyRow, EvictionRun, EvictionTiming, LabelToken,
    LabelTrace, Provenance, Record, read_table,
};

use crate::claims::part::ByProblem;
use crate::error::{Error, Result};

/// Where a run keeps labels by truncation, beside those by occlusion.
pub const TRUNCATED: &str = "truncated";

/// What lies in a folder of results. Tables that are not there are empty.
#[derive(Debug, Default)]
pub struct Run {
    pub(crate) by_trace: Vec<CorrelationsByTrace>,
    pub(crate) surprisal: Vec<BandSurprisal>,
    pub(crate) difficulty: Vec<DifficultyRow>,
    pub(crate) agreement: Vec<AgreementRow>,
    pub(crate) labels: Vec<LabelTrace>,
    pub(crate) tokens: Vec<LabelToken>,
    pub(crate) truncated: Vec<LabelToken>,
    pub(crate) runs: Vec<EvictionRun>,
    pub(crate) timings: Vec<EvictionTiming>,
    /// Name of the model.
    pub model: String,
}

impl Run {
    /// Reads the tables of a folder, and the labels by truncation of its folder `truncated`.
    ///
    /// # Errors
    /// If one of them cannot be read, or there is none.
    pub fn open(folder: &Path) -> Result<Self> {
        let mut model = None;
        let run = Self {
            by_trace: table(folder, &mut model)?,
            surprisal: table(folder, &mut model)?,
            difficulty: table(folder, &mut model)?,
            agreement: table(folder, &mut model)?,
            labels: table(folder, &mut model)?,
            tokens: table(folder, &mut model)?,
            truncated: table(&folder.join(TRUNCATED), &mut model)?,
            runs: table(folder, &mut model)?,
            timings: table(folder, &mut model)?,
            model: String::new(),
        };
        match model {
            Some(model) => Ok(Self { model, ..run }),
            None => Err(Error::NoResults { folder: folder.to_owned() }),
        }
    }
}

impl Run {
    /// Problem set and problem of each trace; a trace that no table tells of is a problem of its own.
    pub(crate) fn problems(&self) -> BTreeMap<&str, (&str, &str)> {
        let ranked = self.by_trace.iter().map(|row| {
            (row.trace_id.as_str(), (row.dataset.as_str(), row.problem_id.as_deref().unwrap_or(&row.trace_id)))
        });
        let labelled =
            self.labels.iter().map(|row| (row.trace_id.as_str(), (row.dataset.as_str(), row.problem_id.as_str())));
        ranked.chain(labelled).collect()
    }

    /// The values of traces by problem set and problem.
    pub(crate) fn by_problem<'r>(
        &'r self,
        values: impl IntoIterator<Item = (&'r str, f64)>,
    ) -> BTreeMap<&'r str, ByProblem<'r>> {
        let problems = self.problems();
        let mut sets: BTreeMap<&str, ByProblem<'_>> = BTreeMap::new();
        for (trace, value) in values {
            let (dataset, problem) = problems.get(trace).copied().unwrap_or(("all", trace));
            sets.entry(dataset).or_default().entry(problem).or_default().push(value);
        }
        sets
    }
}

/// A table of a folder, empty where it is not there; notes the model that made it.
fn table<R: Record>(folder: &Path, model: &mut Option<String>) -> Result<Vec<R>> {
    let path = folder.join(format!("{}.parquet", R::table().name));
    if !path.exists() {
        return Ok(Vec::new());
    }
    let (rows, provenance): (Vec<R>, Provenance) = read_table(&path)?;
    let id = provenance.get("model").and_then(|made| made["id"].as_str().map(str::to_owned));
    *model = model.take().or(id).or_else(|| Some("an unnamed model".to_owned()));
    Ok(rows)
}
