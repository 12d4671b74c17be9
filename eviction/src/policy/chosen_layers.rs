//! Layers that `epikv correlate --pick` chose. The run must not have a problem that they were chosen
//! on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use epikv_schemas::{Provenance, Selection, read_table};
use epikv_signals::Bands;

use crate::error::{LayersError, Result};
use crate::policy::parse::NamedPolicy;

/// Problems that an error names.
const SHOWN: usize = 3;

/// A choice of layers and what it was made on.
#[derive(Debug)]
pub struct ChosenLayers {
    /// The file.
    path: PathBuf,
    /// What made it.
    made_by: Provenance,
    plus: Option<i16>,
    minus: Option<i16>,
    problem_ids: BTreeSet<String>,
}

impl ChosenLayers {
    /// Reads the choice of a file `selection.parquet`; `dataset` says whose where the file has several.
    ///
    /// # Errors
    /// If the file cannot be read, or has not one choice.
    pub fn read(path: &Path, dataset: Option<&str>) -> Result<Self> {
        let (rows, made_by) = read_table::<Selection>(path)?;
        let is_asked = |row: &&Selection| row.picked && dataset.is_none_or(|name| row.dataset == name);
        let mut picked = rows.iter().filter(is_asked);
        let Some(first) = picked.next() else {
            return Err(LayersError::NotPicked { path: path.to_owned() }.into());
        };
        let layers = (first.layer_plus, first.layer_minus);
        if let Some(other) = picked.find(|row| (row.layer_plus, row.layer_minus) != layers) {
            let of = |row: &Selection| (row.candidate.clone(), row.dataset.clone());
            return Err(LayersError::Several { path: path.to_owned(), first: of(first), other: of(other) }.into());
        }
        let stored = made_by.get("run").and_then(|run| run["problem_ids"].as_array());
        let Some(stored) = stored else {
            return Err(LayersError::NoProblems { path: path.to_owned() }.into());
        };
        let problem_ids = stored.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
        Ok(Self { path: path.to_owned(), plus: layers.0, minus: layers.1, problem_ids, made_by })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What made it.
    pub fn made_by(&self) -> &Provenance {
        &self.made_by
    }

    /// Refuses a run that has a problem which the layers were chosen on.
    ///
    /// # Errors
    /// If there is one.
    pub fn check_problems<'p>(&self, problem_ids: impl Iterator<Item = &'p str>) -> Result<()> {
        let both: BTreeSet<&str> = problem_ids.filter(|id| self.problem_ids.contains(*id)).collect();
        if both.is_empty() {
            return Ok(());
        }
        let more = if both.len() > SHOWN { ", .." } else { "" };
        let names = both.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ") + more;
        Err(LayersError::Overlap { path: self.path.clone(), n: both.len(), names }.into())
    }

    /// The policies with the layers in each `epikv` and `epikv-raw` whose layers were not typed.
    ///
    /// # Errors
    /// If the choice does not fit a policy, or no policy takes layers.
    pub fn apply(&self, policies: Vec<NamedPolicy>) -> Result<Vec<NamedPolicy>> {
        let mut used = false;
        let with = |named: NamedPolicy| -> Result<NamedPolicy> {
            let mut policy = named.policy;
            let name = policy.score.spec().name;
            let bands = Bands::parse(policy.score.argument()).filter(|_| ["epikv", "epikv-raw"].contains(&name));
            let Some(bands) = bands.filter(|bands| bands.layers.is_none()) else {
                return Ok(named);
            };
            used = true;
            let text = match (self.plus, self.minus, name) {
                (Some(a), Some(b), _) => {
                    let window = bands.window.map_or_else(String::new, |window| format!("+window{window}"));
                    format!("{name}({a}+{b}{window})")
                }
                (Some(a), None, "epikv") => format!("layer({a})"),
                (None, Some(b), "epikv") => format!("layer(-{b})"),
                _ => {
                    let (path, policy) = (self.path.clone(), named.to_string());
                    return Err(LayersError::NoPair { path, policy }.into());
                }
            };
            policy.score = text.parse()?;
            // By its parts, so that tables name the layers.
            format!("{};{policy}", named.row.name).parse()
        };
        let policies = policies.into_iter().map(with).collect::<Result<_>>()?;
        if !used {
            return Err(LayersError::NoUse { path: self.path.clone() }.into());
        }
        Ok(policies)
    }
}
