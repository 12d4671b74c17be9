//! The commit of a run: several files appear together, whatever stops the process in between.
//!
//! The files lie staged beside the folder's results, each written and synced. The commit record `commit.json` names them with
//! their hashes; once it stands in the folder the run is done, and what is left to do can be done again: move each file in
//! place, list it in the manifest, remove the record. Whoever opens the folder next does that first ([`roll_forward`]). Until
//! then readers refuse the files that the record names.

use std::{
    fs as std_fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    error::{Error, Result},
    fs::{self, failed},
    manifest::{Manifest, PartInfo, is_bare_name},
};

/// Name of the commit record in a run folder.
const FILE: &str = "commit.json";

/// A record of a million files; a larger file is not one of ours.
const MOST_BYTES: u64 = 1 << 30;

/// What a run moves in place, in this order, and lists.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Folder of the staged files, relative to the run folder; none where all stand in place.
    staged: PathBuf,
    /// Files to move.
    moved: Vec<PartInfo>,
    /// Files that stand in place already and are listed before the others.
    in_place: Vec<PartInfo>,
    /// What the manifest says of the run.
    info: Map<String, Value>,
}

/// Moves the files of `folder/staged` into `folder` and lists them in its manifest, after those of `in_place`.
///
/// The caller holds the folder's lock.
///
/// # Errors
/// An I/O failure. Before the record is in place the folder is as it was before; after that [`roll_forward`] completes it.
pub fn commit(
    folder: &Path,
    staged: &Path,
    moved: Vec<PartInfo>,
    in_place: Vec<PartInfo>,
    info: Map<String, Value>,
) -> Result<()> {
    let record = Record { staged: staged.to_owned(), moved, in_place, info };
    let path = folder.join(FILE);
    let text = serde_json::to_vec(&record).map_err(|source| Error::BadCommit { path: path.clone(), source })?;
    // Its temporary file lies among the staged ones, so that nothing else is left in the folder by a kill.
    let written = folder.join(staged).join(FILE);
    fs::write_atomic(&written, &text)?;
    std_fs::rename(&written, &path).map_err(failed("replace", &path))?;
    fs::sync_folder(folder)?;
    complete(folder, &record)
}

/// Completes a commit that a stopped process left; does nothing where there is none. The caller holds the folder's lock.
///
/// # Errors
/// A broken record, a file that is neither staged nor in place, or an I/O failure.
pub fn roll_forward(folder: &Path) -> Result<()> {
    read(folder)?.map_or(Ok(()), |record| complete(folder, &record))
}

/// Refuses a file that a commit is about to replace.
pub(crate) fn check(file: &Path) -> Result<()> {
    let folder = fs::folder_of(file);
    let name = file.file_name();
    let concerns = |part: &PartInfo| name.is_some_and(|name| *name == *part.file);
    match read(folder)? {
        Some(record) if record.moved.iter().any(concerns) => Err(Error::Unfinished { path: file.to_owned() }),
        _ => Ok(()),
    }
}

fn read(folder: &Path) -> Result<Option<Record>> {
    let path = folder.join(FILE);
    let bytes = match fs::read(&path, MOST_BYTES) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let record: Record =
        serde_json::from_slice(&bytes).map_err(|source| Error::BadCommit { path: path.clone(), source })?;
    let mut parts = record.moved.iter().chain(&record.in_place);
    let outside = parts.find(|part| !is_bare_name(&part.file)).map(|part| part.file.clone());
    let below = |path: &Path| path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    match outside.or_else(|| (!below(&record.staged)).then(|| record.staged.display().to_string())) {
        Some(got) => Err(Error::OutsideFolder { path, got }),
        None => Ok(Some(record)),
    }
}

/// Does what the record says, as far as it is not done yet.
fn complete(folder: &Path, record: &Record) -> Result<()> {
    let staged = folder.join(&record.staged);
    let mut manifest = Manifest::open(folder)?;
    for part in &record.moved {
        let (from, to) = (staged.join(&part.file), folder.join(&part.file));
        if from.exists() {
            std_fs::rename(&from, &to).map_err(failed("replace", &to))?;
        } else {
            manifest.verify_part(part)?;
        }
    }
    fs::sync_folder(folder)?;
    for part in record.in_place.iter().chain(&record.moved) {
        let last = manifest.entries().iter().rfind(|entry| entry.part.file == part.file);
        if last.is_none_or(|entry| entry.part != *part || entry.info != record.info) {
            manifest.append(part.clone(), record.info.clone())?;
        }
    }
    let path = folder.join(FILE);
    std_fs::remove_file(&path).map_err(failed("remove", &path))?;
    fs::sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LabelToken, read_table};

    /// A run folder with two staged files, `a` and `b`, over an older `a`.
    fn staged(folder: &Path) -> Record {
        std_fs::create_dir_all(folder.join("staged")).unwrap();
        fs::write_atomic(&folder.join("a"), b"old").unwrap();
        let part = |file: &str| {
            let written = fs::write_atomic(&folder.join("staged").join(file), file.as_bytes()).unwrap();
            PartInfo { file: file.to_owned(), rows: 0, sha256: written.sha256, bytes: written.bytes }
        };
        Record { staged: "staged".into(), moved: vec![part("a"), part("b")], in_place: Vec::new(), info: Map::new() }
    }

    fn write_record(folder: &Path, record: &Record) {
        std_fs::write(folder.join(FILE), serde_json::to_vec(record).unwrap()).unwrap();
    }

    /// Wherever the process stops after the commit point, the next start gives the same folder.
    #[test]
    fn a_stopped_commit_is_completed() {
        for stop in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            let record = staged(folder);
            write_record(folder, &record);
            for (at, part) in record.moved.iter().enumerate() {
                if at < stop {
                    std_fs::rename(folder.join("staged").join(&part.file), folder.join(&part.file)).unwrap();
                }
                if at + 2 < stop {
                    Manifest::open(folder).unwrap().append(part.clone(), Map::new()).unwrap();
                }
            }
            roll_forward(folder).unwrap();
            assert_eq!(std_fs::read(folder.join("a")).unwrap(), b"a");
            assert_eq!(std_fs::read(folder.join("b")).unwrap(), b"b");
            let manifest = Manifest::open(folder).unwrap();
            assert_eq!(manifest.entries().len(), 2, "stopped after {stop} steps");
            manifest.verify().unwrap();
            assert!(!folder.join(FILE).exists());
            roll_forward(folder).unwrap();
        }
    }

    #[test]
    fn readers_refuse_what_a_commit_is_about_to_replace() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut record = staged(folder);
        record.moved[0].file = "label_tokens.parquet".to_owned();
        write_record(folder, &record);
        let refused = read_table::<LabelToken>(&folder.join("label_tokens.parquet"));
        assert!(matches!(refused, Err(Error::Unfinished { .. })), "{refused:?}");
    }

    #[test]
    fn a_record_names_files_of_its_folder_only() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (staged_in, file) in [("..", "a"), ("/tmp", "a"), ("staged", "../a")] {
            let mut record = staged(folder);
            record.staged = staged_in.into();
            record.moved[0].file = file.to_owned();
            write_record(folder, &record);
            assert!(matches!(roll_forward(folder), Err(Error::OutsideFolder { .. })), "{staged_in} {file}");
        }
    }

    #[test]
    fn a_lost_staged_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let record = staged(folder);
        write_record(folder, &record);
        std_fs::remove_file(folder.join("staged/a")).unwrap();
        assert!(matches!(roll_forward(folder), Err(Error::PartChanged { .. })));
    }
}
