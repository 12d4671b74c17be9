//! Finished generations on disk, which a later run of the same folder reuses.
//!
//! A *cell* is a problem under a policy, a budget and a sample. Its hash is that of everything that determines its row.
//! Each cell is written as it ends, whole or not at all, into `DIR/.cells`; the tables of a finished run are cells too. So a
//! killed run loses what was under way and nothing else, several processes may fill one folder with shards, and more
//! policies, budgets or problems extend it. A cell that is there with another hash is a conflict.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use epikv_schemas::{
    EvictionRun, EvictionSignal, EvictionStep, EvictionTiming, PartInfo, Provenance, Record, fs, read_table,
    read_unlisted, write_table,
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::experiment::outcome::Outcome;

/// Where cells lie until the tables are written.
pub(crate) const FOLDER: &str = ".cells";

/// What names a cell in its tables: problem, policy, budget, sample.
pub(crate) type Key = (String, String, Option<String>, i32);

/// A finished generation.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its row.
    pub run: EvictionRun,
    /// What it cost; `None` where nothing was decoded.
    pub timing: Option<EvictionTiming>,
}

/// What is recorded of each generation besides its row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Records {
    /// Every eviction.
    pub steps: bool,
    /// Signals under eviction.
    pub signals: bool,
}

/// The cells of one folder.
#[derive(Debug)]
pub struct Cells {
    folder: PathBuf,
    records: Records,
    /// Whether what is there counts for nothing.
    fresh: bool,
    done: BTreeMap<Key, Finished>,
}

/// The hash of what determines a cell, 32 hexadecimal digits.
pub(crate) fn hash(of: &Value) -> String {
    let digest = Sha256::digest(of.to_string());
    let first: [u8; 16] = std::array::from_fn(|i| digest[i]);
    format!("{:032x}", u128::from_be_bytes(first))
}

fn key(run: &EvictionRun) -> Key {
    (run.problem_id.clone(), run.policy.clone(), run.budget.clone(), run.sample)
}

fn key_of_timing(timing: &EvictionTiming) -> Key {
    (timing.problem_id.clone(), timing.policy.clone(), timing.budget.clone(), timing.sample)
}

/// What lies in a folder, in order of names.
pub(crate) fn listed(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let entries = std::fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.map_err(|source| Error::Folder { path: folder.to_owned(), source })
}

impl Cells {
    /// The cells that are in a folder, none with `fresh`. Changes nothing on disk.
    ///
    /// # Errors
    /// A file that cannot be read. A cell whose file is damaged is done again.
    pub fn open(folder: &Path, records: Records, fresh: bool) -> Result<Self> {
        let mut cells = Self { folder: folder.to_owned(), records, fresh, done: BTreeMap::new() };
        if fresh {
            return Ok(cells);
        }
        let (runs, timings) = (cells.table::<EvictionRun>(), cells.table::<EvictionTiming>());
        if runs.exists() {
            let timings = if timings.exists() { read_table(&timings)?.0 } else { Vec::new() };
            cells.add(read_table(&runs)?.0, timings);
        }
        for run in cells.parts(".run.parquet")? {
            let Ok((runs, _)) = read_table::<EvictionRun>(&run) else { continue };
            let timing = PathBuf::from(run.to_string_lossy().replace(".run.parquet", ".timing.parquet"));
            let timings = read_table(&timing).map_or_else(|_| Vec::new(), |(rows, _)| rows);
            cells.add(runs, timings);
        }
        Ok(cells)
    }

    /// Makes the folder, once it is known that something will be kept in it. A fresh one is rid of the tables, the
    /// unfinished cells and what was recorded.
    pub(crate) fn begin(&self) -> Result<()> {
        fs::create_folder(&self.folder.join(FOLDER))?;
        if !self.fresh {
            return Ok(());
        }
        let is_recorded = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            [EvictionStep::TABLE.name, EvictionSignal::TABLE.name].iter().any(|table| {
                name.strip_prefix(table).is_some_and(|rest| rest.starts_with('-') && rest.ends_with(".parquet"))
            })
        };
        let recorded = listed(&self.folder)?.into_iter().filter(is_recorded);
        let tables = [self.table::<EvictionRun>(), self.table::<EvictionTiming>()];
        let tables = tables.into_iter().filter(|table| table.exists());
        remove(recorded.chain(tables).chain(self.parts("")?))
    }

    fn table<R: Record>(&self) -> PathBuf {
        self.folder.join(format!("{}.parquet", R::TABLE.name))
    }

    fn add(&mut self, runs: Vec<EvictionRun>, timings: Vec<EvictionTiming>) {
        let mut timings: BTreeMap<Key, EvictionTiming> = timings.into_iter().map(|t| (key_of_timing(&t), t)).collect();
        for run in runs {
            let key = key(&run);
            // What could not be run may run now.
            if run.outcome != Outcome::Infeasible.name() && run.outcome != Outcome::Error.name() {
                self.done.insert(key.clone(), Finished { timing: timings.remove(&key), run });
            }
        }
    }

    /// Files of unfinished runs, by the end of their names, in order.
    fn parts(&self, end: &str) -> Result<Vec<PathBuf>> {
        let folder = self.folder.join(FOLDER);
        let all = if folder.exists() { listed(&folder)? } else { BTreeSet::new() };
        Ok(all.into_iter().filter(|path| path.to_string_lossy().ends_with(end)).collect())
    }

    /// A cell that was finished before.
    ///
    /// # Errors
    /// If it was made from something else.
    pub(crate) fn find(&self, run: &Key, cell: &str) -> Result<Option<&Finished>> {
        let Some(finished) = self.done.get(run) else { return Ok(None) };
        if finished.run.cell != cell {
            let (problem, policy, budget, sample) = run.clone();
            return Err(Error::Conflict { folder: self.folder.clone(), problem, policy, budget, sample });
        }
        let steps = finished.run.n_evictions == Some(0) || self.part::<EvictionStep>(cell, 0).exists();
        let signals = self.part::<EvictionSignal>(cell, 0).exists();
        let recorded = (steps || !self.records.steps) && (signals || !self.records.signals);
        Ok(recorded.then_some(finished))
    }

    /// Policies that have a finished generation.
    pub fn finished_policies(&self) -> BTreeSet<String> {
        self.done.keys().map(|(_, policy, ..)| policy.clone()).collect()
    }

    /// Cells that were finished before and are none of `now`.
    pub(crate) fn others(&self, now: &[EvictionRun]) -> Vec<Finished> {
        let now: BTreeSet<Key> = now.iter().map(key).collect();
        self.done.iter().filter(|(key, _)| !now.contains(*key)).map(|(_, finished)| finished.clone()).collect()
    }

    /// Keeps a cell that has just ended. The row is written last: with it the cell is finished.
    pub(crate) fn keep(&self, finished: &Finished) -> Result<()> {
        let path = |end: &str| self.folder.join(FOLDER).join(format!("{}.{end}.parquet", finished.run.cell));
        if let Some(timing) = &finished.timing {
            write_table(&path("timing"), std::slice::from_ref(timing), &Provenance::new())?;
        }
        write_table(&path("run"), std::slice::from_ref(&finished.run), &Provenance::new())?;
        Ok(())
    }

    /// Whether evictions are recorded.
    pub(crate) fn records_steps(&self) -> bool {
        self.records.steps
    }

    /// Whether signals are recorded.
    pub(crate) fn records_signals(&self) -> bool {
        self.records.signals
    }

    /// Where a part of what was recorded of a cell lies.
    fn part<R: Record>(&self, cell: &str, part: usize) -> PathBuf {
        self.folder.join(format!("{}-{cell}-{part:04}.parquet", R::TABLE.name))
    }

    /// Writes the signals of a cell.
    pub(crate) fn signals(&self, cell: &str, rows: &[EvictionSignal]) -> Result<()> {
        write_table(&self.part::<EvictionSignal>(cell, 0), rows, &Provenance::new())?;
        Ok(())
    }

    /// The signals of a cell; none where they were not recorded.
    pub(crate) fn signals_of(&self, cell: &str) -> Result<Vec<EvictionSignal>> {
        let path = self.part::<EvictionSignal>(cell, 0);
        if path.exists() { Ok(read_unlisted(&path)?) } else { Ok(Vec::new()) }
    }

    /// Writes a part of the flight recorder.
    pub(crate) fn steps(&self, cell: &str, part: usize, rows: &[EvictionStep]) -> Result<()> {
        write_table(&self.part::<EvictionStep>(cell, part), rows, &Provenance::new())?;
        Ok(())
    }

    /// The recorded parts of finished cells, by name. Those of a generation that was killed are left out; it writes them
    /// again.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn recorded(&self, rows: &[EvictionRun]) -> Result<Vec<PartInfo>> {
        let finished: BTreeSet<&str> = rows.iter().map(|row| row.cell.as_str()).collect();
        let mut parts = Vec::new();
        for path in listed(&self.folder)? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let of = |table: &str| name.strip_prefix(table).and_then(|rest| rest.get(1..33)).map(str::to_owned);
            let is_done = |cell: Option<String>| cell.is_some_and(|cell| finished.contains(cell.as_str()));
            let rows = if is_done(of(EvictionStep::TABLE.name)) {
                read_unlisted::<EvictionStep>(&path)?.len() as u64
            } else if is_done(of(EvictionSignal::TABLE.name)) {
                read_unlisted::<EvictionSignal>(&path)?.len() as u64
            } else {
                continue;
            };
            let fs::Fingerprint { bytes, sha256 } = fs::fingerprint(&path)?;
            parts.push(PartInfo { file: name, rows, sha256, bytes });
        }
        Ok(parts)
    }

    /// Removes what was kept of unfinished runs, whose cells now stand in the tables.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn merged(self) -> Result<()> {
        remove(self.parts(".parquet")?.into_iter())
    }
}

fn remove(mut paths: impl Iterator<Item = PathBuf>) -> Result<()> {
    paths.try_for_each(|path| std::fs::remove_file(&path).map_err(|source| Error::Folder { path, source }))
}
