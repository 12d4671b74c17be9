//! `--layers-from`: layers that `epikv correlate --pick` chose. The run must not have a problem that they were chosen
//! on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use epikv_eviction::{NamedPolicy, Score};
use epikv_model::Model;
use epikv_schemas::{Provenance, Selection, read_table};
use epikv_words::Hint;

use crate::inputs::check_made_by;

/// Problems that an error names.
const SHOWN: usize = 3;

/// A choice of layers and what it was made on.
#[derive(Debug)]
pub(crate) struct ChosenLayers {
    /// The file.
    path: PathBuf,
    /// What made it.
    made_by: Provenance,
    plus: Option<i16>,
    minus: Option<i16>,
    problem_ids: BTreeSet<String>,
}

/// The layers were chosen on problems that they would be judged on.
#[derive(Debug, thiserror::Error)]
#[error(
    "--layers-from {}: expected layers chosen on other problems, got {n} problems that are in both ({names})",
    path.display()
)]
pub(crate) struct Overlap {
    path: PathBuf,
    n: usize,
    names: String,
}

impl Hint for Overlap {
    fn hint(&self) -> Option<String> {
        Some(
            "layers look better on the problems that they were chosen on; label and correlate \
                                           one part of the problems with --pick, and evict on the other"
                .to_owned(),
        )
    }
}

impl ChosenLayers {
    /// Reads the choice of a file `selection.parquet`; `dataset` says whose where the file has several.
    pub(crate) fn read(path: &Path, dataset: Option<&str>) -> Result<Self> {
        let (rows, made_by) = read_table::<Selection>(path)?;
        let is_asked = |row: &&Selection| row.picked && dataset.is_none_or(|name| row.dataset == name);
        let mut picked = rows.iter().filter(is_asked);
        let Some(first) = picked.next() else {
            bail!(
                "--layers-from {}: expected a picked layer or pair of layers, got none; correlate with --pick",
                path.display()
            );
        };
        let layers = (first.layer_plus, first.layer_minus);
        if let Some(other) = picked.find(|row| (row.layer_plus, row.layer_minus) != layers) {
            bail!(
                "--layers-from {}: expected one choice, got {} on {} and {} on {}; --layers-dataset names one",
                path.display(),
                first.candidate,
                first.dataset,
                other.candidate,
                other.dataset
            );
        }
        let stored = made_by.get("run").and_then(|run| run["problem_ids"].as_array());
        let Some(stored) = stored else {
            bail!("--layers-from {}: expected the problems that the layers were chosen on, got none", path.display());
        };
        let problem_ids = stored.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
        Ok(Self { path: path.to_owned(), plus: layers.0, minus: layers.1, problem_ids, made_by })
    }

    /// Refuses a run that has a problem which the layers were chosen on, and layers of a model with another vocabulary.
    pub(crate) fn check<'p>(&self, problem_ids: impl Iterator<Item = &'p str>, model: &Model) -> Result<()> {
        self.check_problems(problem_ids)?;
        check_made_by(&self.made_by, model, &self.path)
    }

    fn check_problems<'p>(&self, problem_ids: impl Iterator<Item = &'p str>) -> Result<(), Overlap> {
        let both: BTreeSet<&str> = problem_ids.filter(|id| self.problem_ids.contains(*id)).collect();
        if both.is_empty() {
            return Ok(());
        }
        let more = if both.len() > SHOWN { ", .." } else { "" };
        let names = both.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ") + more;
        Err(Overlap { path: self.path.clone(), n: both.len(), names })
    }

    /// The policies with the layers in each `epikv` and `epikv-raw` whose layers were not typed.
    pub(crate) fn apply(&self, policies: Vec<NamedPolicy>) -> Result<Vec<NamedPolicy>> {
        let mut used = false;
        let with = |named: NamedPolicy| -> Result<NamedPolicy> {
            let mut policy = named.policy;
            let Score::Epikv(bands) = policy.score else { return Ok(named) };
            if bands.layers.is_some() {
                return Ok(named);
            }
            used = true;
            let text = match (self.plus, self.minus, bands.raw) {
                (Some(a), Some(b), raw) => {
                    let window = bands.window.map_or_else(String::new, |window| format!("+window{window}"));
                    format!("{}({a}+{b}{window})", if raw { "epikv-raw" } else { "epikv" })
                }
                (Some(a), None, false) => format!("layer({a})"),
                (None, Some(b), false) => format!("layer(-{b})"),
                _ => bail!("--layers-from {}: expected a pair of layers for {named}, got one", self.path.display()),
            };
            policy.score = text.parse()?;
            // By its parts, so that tables name the layers.
            Ok(format!("{};{policy}", named.row.name).parse()?)
        };
        let policies = policies.into_iter().map(with).collect::<Result<_>>()?;
        if !used {
            bail!(
                "--layers-from {}: expected a policy that takes layers (epikv, epikv-raw), got none",
                self.path.display()
            );
        }
        Ok(policies)
    }
}
