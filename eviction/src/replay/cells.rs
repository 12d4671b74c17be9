//! Finished parts of a replay on disk, so that a run that was killed goes on where it was.
//!
//! A *cell* is a trace under a policy and a budget, or the curves of a score on a trace. Its file is named after the hash of
//! everything that determines its rows and is written whole or not at all; so what was made from something else is not found.

use std::path::{Path, PathBuf};

use epikv_schemas::{EvictionCurve, EvictionReplay, Provenance, Record, fs, read_table, write_table};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::experiment::cells::{FOLDER, hash, listed};

/// The cells of one folder.
#[derive(Debug)]
pub struct ReplayCells {
    folder: PathBuf,
    /// Whether what is there counts for nothing.
    fresh: bool,
}

impl ReplayCells {
    /// The cells of the folder of a replay; none that are there with `fresh`. Changes nothing on disk.
    pub fn of(folder: &Path, fresh: bool) -> Self {
        Self { folder: folder.join(FOLDER), fresh }
    }

    /// Makes the folder, once it is known that something will be kept in it, and removes what does not count.
    pub(super) fn begin(&self) -> Result<()> {
        fs::create_folder(&self.folder)?;
        if self.fresh { self.remove() } else { Ok(()) }
    }

    fn path<R: Record>(&self, of: &Value) -> PathBuf {
        self.folder.join(format!("{}.{}.parquet", hash(of), R::TABLE.name))
    }

    /// The rows of a cell that was finished. One whose file is damaged is done again.
    pub(super) fn find<R: Record>(&self, of: &Value) -> Option<Vec<R>> {
        let path = self.path::<R>(of);
        path.exists().then(|| read_table(&path).ok()).flatten().map(|(rows, _)| rows)
    }

    /// Keeps the rows of a cell that has just ended.
    pub(super) fn keep<R: Record>(&self, of: &Value, rows: &[R]) -> Result<()> {
        write_table(&self.path::<R>(of), rows, &Provenance::new())?;
        Ok(())
    }

    /// Removes the cells, whose rows now stand in the tables.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self) -> Result<()> {
        let ends = [EvictionReplay::TABLE.name, EvictionCurve::TABLE.name].map(|name| format!(".{name}.parquet"));
        for path in listed(&self.folder)? {
            let name = path.to_string_lossy();
            if ends.iter().any(|end| name.ends_with(end)) {
                std::fs::remove_file(&path).map_err(|source| Error::Folder { path, source })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_is_found_by_what_determines_it() {
        let folder = std::env::temp_dir().join(format!("epikv-replay-cells-{}", std::process::id()));
        let cells = ReplayCells::of(&folder, true);
        cells.begin().expect("a folder");
        let row = EvictionCurve {
            trace_id: "t".to_owned(),
            problem_id: "p".to_owned(),
            dataset: "d".to_owned(),
            score: "h2o".to_owned(),
            kind: "keep".to_owned(),
            percent: 5,
            n_held: 3,
            correct: None,
            answer: None,
        };
        cells.keep(&json!({ "a": 1 }), std::slice::from_ref(&row)).expect("written");
        let cells = ReplayCells::of(&folder, false);
        cells.begin().expect("a folder");
        assert_eq!(cells.find::<EvictionCurve>(&json!({ "a": 1 })), Some(vec![row]));
        assert_eq!(cells.find::<EvictionCurve>(&json!({ "a": 2 })), None);
        assert_eq!(cells.find::<EvictionReplay>(&json!({ "a": 1 })), None, "another table");
        std::fs::write(cells.path::<EvictionCurve>(&json!({ "a": 1 })), b"PAR1").expect("damaged");
        assert_eq!(cells.find::<EvictionCurve>(&json!({ "a": 1 })), None);
        cells.remove().expect("removed");
        assert!(listed(&cells.folder).expect("listed").is_empty());
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
