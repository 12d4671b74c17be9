//! Output paths: checked before the model is loaded, written whole, listed in the manifest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use epikv_schemas::{Lock, Manifest, PartInfo, Provenance, Record, commit, fs, write_table};
use epikv_words::Hint;
use serde_json::{Map, Value};

use crate::{inputs, setup};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// Everything was done.
    All,
    /// Some items failed; they were listed.
    SomeFailed,
}

/// Name of the list of finished files.
const MANIFEST: &str = "manifest.jsonl";

/// Results are already there.
#[derive(Debug, thiserror::Error)]
#[error("{} exists already", path.display())]
pub(crate) struct Exists {
    path: PathBuf,
}

impl Exists {
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }
}

impl Hint for Exists {
    fn hint(&self) -> Option<String> {
        Some(format!("--fresh replaces it, another path keeps {}", self.path.display()))
    }
}

/// The results are there already, made by the same command from the same inputs: not a failure.
#[derive(Debug, thiserror::Error)]
#[error("nothing to do: {} has the results of this command", folder.display())]
pub(crate) struct NothingToDo {
    folder: PathBuf,
}

/// Refuses to replace a file without `fresh`; one that is there already with the content that is to be written is no failure.
pub(crate) fn check_alone(path: &Path, content: &[u8], fresh: bool) -> Result<()> {
    if fresh || !path.exists() {
        return Ok(());
    }
    // One byte more than the content tells a longer file.
    if fs::read(path, content.len() as u64 + 1).is_ok_and(|there| there == content) {
        return Err(NothingToDo { folder: path.to_owned() }.into());
    }
    Err(Exists::at(path).into())
}

/// Where the files of runs lie until all of them are written: a folder and locks for each run.
const UNFINISHED: &str = ".unfinished";

/// The lock of the folder itself, which a run holds while it puts its files in place.
const FOLDER_LOCK: &str = "folder.lock";

/// Locks a file of the folder that is about to be written, so that a second run that would write it is refused.
pub(crate) fn lock(folder: &Path, file: &str) -> Result<Lock> {
    Ok(Lock::take(&folder.join(UNFINISHED).join(format!("{file}.lock")), &folder.join(file))?)
}

/// Completes what a run that was killed had committed in the folder, if there is such a run.
pub(crate) fn complete(folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let _folder_lock = Lock::wait(&folder.join(UNFINISHED).join(FOLDER_LOCK))?;
    Ok(commit::roll_forward(folder)?)
}

/// A folder of results.
///
/// The files of a run appear together: they are written aside and put in place by [`RunFolder::finish`], so a run that
/// fails or is killed leaves the files of the one before as they were.
#[derive(Debug)]
pub(crate) struct RunFolder {
    folder: PathBuf,
    /// Where its files are written, relative to `folder`. Named after the first of them, which is locked.
    staged: PathBuf,
    locks: Vec<Lock>,
    /// What the manifest says of the run besides its files.
    info: Map<String, Value>,
    written: Vec<PartInfo>,
    /// Parts that were written in their places while the run was under way.
    in_place: Vec<PartInfo>,
    /// Folders that the run made, the innermost first. Where it fails, those that hold nothing are removed.
    made: Vec<PathBuf>,
}

impl RunFolder {
    /// The folder of a run that goes on where it was: `files` are replaced by larger ones, and with `fresh` removed first.
    pub(crate) fn extend(folder: &Path, files: &[&str], fresh: bool) -> Result<Self> {
        let run = Self::locked(folder, files, fresh)?;
        for path in files.iter().map(|file| folder.join(file)).filter(|path| fresh && path.exists()) {
            std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        Ok(run)
    }

    /// Makes the folder, refuses to replace `files` unless `fresh`, and proves that it can be written.
    pub(crate) fn open(folder: &Path, files: &[&str], fresh: bool) -> Result<Self> {
        let run = Self::locked(folder, files, fresh)?;
        if !fresh && run.is_done(files) {
            return Err(NothingToDo { folder: folder.to_owned() }.into());
        }
        for path in files.iter().map(|file| folder.join(file)).filter(|path| path.exists()) {
            if !fresh {
                return Err(Exists { path }.into());
            }
            if !path.is_file() {
                bail!("{}: expected a file to replace, got something else", path.display());
            }
        }
        Ok(run)
    }

    /// Makes the folder, locks `files`, and completes what a run that was killed had committed.
    fn locked(folder: &Path, files: &[&str], fresh: bool) -> Result<Self> {
        let made = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let made: Vec<PathBuf> = made.map(Path::to_owned).collect();
        fs::create_folder(folder)?;
        let first = files.first().copied().unwrap_or("run");
        let run = Self {
            folder: folder.to_owned(),
            staged: Path::new(UNFINISHED).join(format!("{first}.d")),
            locks: files.iter().map(|file| lock(folder, file)).collect::<Result<_>>()?,
            info: Map::from_iter([("arguments".to_owned(), setup::arguments())]),
            written: Vec::new(),
            in_place: Vec::new(),
            made,
        };
        {
            let _folder_lock = run.lock_folder()?;
            if fresh && Manifest::open(folder).is_err() {
                // A manifest that cannot be read lists nothing worth keeping.
                std::fs::remove_file(folder.join(MANIFEST)).with_context(|| format!("removing {MANIFEST}"))?;
            }
            commit::roll_forward(folder)?;
            // To go on beside a manifest that cannot be read would lose what it lists.
            Manifest::open(folder)?;
        }
        // Left by runs that were killed; and a folder that cannot be written fails now, not after hours.
        run.clear();
        fs::create_folder(&folder.join(&run.staged))?;
        Ok(run)
    }

    /// Whether the files that stand there were made by the same command from the same inputs, and are unchanged.
    fn is_done(&self, files: &[&str]) -> bool {
        let Ok(manifest) = Manifest::open(&self.folder) else { return false };
        // A listed file that is gone is not done.
        let is_listed = |file: &str| manifest.entries().iter().any(|entry| entry.part.file == file);
        let mut there = files.iter().filter(|file| self.folder.join(file).exists() || is_listed(file)).peekable();
        if there.peek().is_none() {
            return false;
        }
        let model = setup::argument("--model").map(PathBuf::from).filter(|path| path.exists());
        there.all(|file| {
            let entry = manifest.entries().iter().rfind(|entry| entry.part.file == **file);
            entry.is_some_and(|entry| {
                entry.info.get("arguments") == Some(&setup::arguments())
                    && entry.info.get("inputs").is_none_or(inputs::are_unchanged)
                    && model.as_ref().is_none_or(|model| inputs::is_older(model, &self.folder.join(file)))
                    && manifest.verify_part(&entry.part).is_ok()
            })
        })
    }

    fn lock_folder(&self) -> Result<Lock> {
        Ok(Lock::wait(&self.folder.join(UNFINISHED).join(FOLDER_LOCK))?)
    }

    /// Adds to what the manifest says of the run.
    pub(crate) fn note(&mut self, key: &str, value: Value) {
        self.info.insert(key.to_owned(), value);
    }

    /// Writes one table aside.
    pub(crate) fn write<R: Record>(&mut self, file: &str, rows: &[R], provenance: &Provenance) -> Result<()> {
        self.written.push(write_table(&self.folder.join(&self.staged).join(file), rows, provenance)?);
        Ok(())
    }

    /// Writes one file that is no table aside: text or a picture. Its line in the manifest has no rows.
    pub(crate) fn write_bytes(&mut self, file: &str, content: &[u8]) -> Result<()> {
        let written = fs::write_atomic(&self.folder.join(&self.staged).join(file), content)?;
        let fs::Fingerprint { bytes, sha256 } = written;
        self.written.push(PartInfo { file: file.to_owned(), rows: 0, sha256, bytes });
        Ok(())
    }

    /// Writes one file that is no table aside, by a function that is given its path.
    pub(crate) fn write_by(&mut self, file: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let path = self.folder.join(&self.staged).join(file);
        write(&path)?;
        let fs::Fingerprint { bytes, sha256 } = fs::fingerprint(&path)?;
        self.written.push(PartInfo { file: file.to_owned(), rows: 0, sha256, bytes });
        Ok(())
    }

    /// Lists a file that stands in its place already. It is written by [`RunFolder::finish`] with the others.
    pub(crate) fn list(&mut self, part: PartInfo) {
        self.in_place.push(part);
    }

    /// Puts all files in place and lists them.
    pub(crate) fn finish(mut self) -> Result<()> {
        let _folder_lock = self.lock_folder()?;
        let (written, in_place) = (std::mem::take(&mut self.written), std::mem::take(&mut self.in_place));
        // Another run may have been killed between its commit and its end.
        commit::roll_forward(&self.folder)?;
        commit::commit(&self.folder, &self.staged, written, in_place, std::mem::take(&mut self.info))?;
        self.made.clear();
        Ok(())
    }

    /// Removes what the run wrote aside, and what was left there by runs that are gone.
    fn clear(&self) {
        // Nothing depends on it: what could not be removed is removed by the next run.
        let _ = std::fs::remove_dir_all(self.folder.join(&self.staged));
        let others = std::fs::read_dir(self.folder.join(UNFINISHED)).into_iter().flatten().flatten();
        for path in others.map(|entry| entry.path()) {
            // A staged folder `NAME.d` belongs to the run that holds `NAME.lock`.
            if path.extension().is_some_and(|extension| extension == "d")
                && Lock::take(&path.with_extension("lock"), &path).is_ok()
            {
                let _ = std::fs::remove_dir_all(&path);
            }
        }
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        self.clear();
        self.locks.clear();
        if !self.made.is_empty() {
            // Where nothing was kept of a generation.
            let _ = std::fs::remove_dir(self.folder.join(".cells"));
        }
        // A folder with anything in it stays.
        for folder in &self.made {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The file and folder parts of a path to one output file.
pub(crate) fn split(path: &Path) -> Result<(PathBuf, String)> {
    let name = path.file_name().and_then(|n| n.to_str());
    let name = name.filter(|n| n.ends_with(".parquet") && n.len() <= 200);
    let name =
        name.ok_or_else(|| anyhow::anyhow!("--out {}: expected a file name that ends in .parquet", path.display()))?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    Ok((folder, name.to_owned()))
}
