//! Output paths: checked before the model is loaded, written whole, listed in the manifest.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use epikv_schemas::{Manifest, PartInfo, Provenance, Record, fs, write_table};
use epikv_words::Hint;
use serde_json::{Map, Value};

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

/// Where the files of a run lie until all of them are written.
const UNFINISHED: &str = ".unfinished";

/// A folder of results.
///
/// The files of a run appear together: they are written aside and moved in place by [`RunFolder::finish`], so a run that
/// fails leaves the files of the one before as they were.
#[derive(Debug)]
pub(crate) struct RunFolder {
    folder: PathBuf,
    manifest: Manifest,
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
        if !fresh && folder.is_dir() {
            // To go on beside a manifest that cannot be read would lose what it lists.
            Manifest::open(folder)?;
        }
        let run = Self::open(folder, files, true)?;
        for path in files.iter().map(|file| folder.join(file)).filter(|path| fresh && path.exists()) {
            std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        Ok(run)
    }

    /// Makes the folder, refuses to replace `files` unless `fresh`, and proves that it can be written.
    pub(crate) fn open(folder: &Path, files: &[&str], fresh: bool) -> Result<Self> {
        let made = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let made: Vec<PathBuf> = made.map(Path::to_owned).collect();
        fs::create_folder(folder)?;
        for path in files.iter().map(|file| folder.join(file)).filter(|path| path.exists()) {
            if !fresh {
                return Err(Exists { path }.into());
            }
            if !path.is_file() {
                bail!("{}: expected a file to replace, got something else", path.display());
            }
        }
        if fresh && Manifest::open(folder).is_err() {
            // A manifest that cannot be read lists nothing worth keeping.
            std::fs::remove_file(folder.join(MANIFEST)).with_context(|| format!("removing {MANIFEST}"))?;
        }
        let run = Self {
            folder: folder.to_owned(),
            manifest: Manifest::open(folder)?,
            info: Map::new(),
            written: Vec::new(),
            in_place: Vec::new(),
            made,
        };
        // Left by a run that was killed; and a folder that cannot be written fails now, not after hours.
        run.clear();
        fs::create_folder(&folder.join(UNFINISHED))?;
        Ok(run)
    }

    /// Adds to what the manifest says of the run.
    pub(crate) fn note(&mut self, key: &str, value: Value) {
        self.info.insert(key.to_owned(), value);
    }

    /// Writes one table aside.
    pub(crate) fn write<R: Record>(&mut self, file: &str, rows: &[R], provenance: &Provenance) -> Result<()> {
        self.written.push(write_table(&self.folder.join(UNFINISHED).join(file), rows, provenance)?);
        Ok(())
    }

    /// Writes one file that is no table aside: text or a picture. Its line in the manifest has no rows.
    pub(crate) fn write_bytes(&mut self, file: &str, content: &[u8]) -> Result<()> {
        let written = fs::write_atomic(&self.folder.join(UNFINISHED).join(file), content)?;
        let fs::Fingerprint { bytes, sha256 } = written;
        self.written.push(PartInfo { file: file.to_owned(), rows: 0, sha256, bytes });
        Ok(())
    }

    /// Writes one file that is no table aside, by a function that is given its path.
    pub(crate) fn write_by(&mut self, file: &str, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let path = self.folder.join(UNFINISHED).join(file);
        write(&path)?;
        let fs::Fingerprint { bytes, sha256 } = fs::fingerprint(&path)?;
        self.written.push(PartInfo { file: file.to_owned(), rows: 0, sha256, bytes });
        Ok(())
    }

    /// Lists a file that stands in its place already. It is written by [`RunFolder::finish`] with the others.
    pub(crate) fn list(&mut self, part: PartInfo) {
        self.in_place.push(part);
    }

    /// Moves all files in place and lists them.
    pub(crate) fn finish(mut self) -> Result<()> {
        for part in &self.written {
            let (from, to) = (self.folder.join(UNFINISHED).join(&part.file), self.folder.join(&part.file));
            std::fs::rename(&from, &to).with_context(|| format!("moving {} in place", to.display()))?;
        }
        for part in std::mem::take(&mut self.in_place).into_iter().chain(std::mem::take(&mut self.written)) {
            self.manifest.append(part, self.info.clone())?;
        }
        self.made.clear();
        Ok(())
    }

    fn clear(&self) {
        // Nothing depends on it: what could not be removed is removed by the next run.
        let _ = std::fs::remove_dir_all(self.folder.join(UNFINISHED));
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        self.clear();
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
