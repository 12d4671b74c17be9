//! Where results go: checked before the model is loaded, written whole, listed in the manifest.

use std::path::{Path, PathBuf};

use anyhow::Result;
use epikv_schemas::{Manifest, PartInfo, Provenance, Record, fs, write_table};
use serde_json::{Map, Value, json};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// Everything was done.
    All,
    /// Some items failed; they were listed.
    SomeFailed,
}

/// Results are already there.
#[derive(Debug, thiserror::Error)]
#[error("{} exists already", path.display())]
pub(crate) struct Exists {
    path: PathBuf,
}

impl Exists {
    pub(crate) fn hint(&self) -> String {
        "--fresh replaces it, another --out keeps it".to_owned()
    }
}

/// A folder of results.
#[derive(Debug)]
pub(crate) struct RunFolder {
    folder: PathBuf,
    manifest: Manifest,
    /// What the manifest says of the run besides its files.
    info: Map<String, Value>,
}

impl RunFolder {
    /// Makes the folder, refuses to replace `files` unless `fresh`, and proves that it can be written.
    pub(crate) fn open(folder: &Path, files: &[&str], fresh: bool) -> Result<Self> {
        fs::create_folder(folder)?;
        if let Some(file) = files.iter().find(|f| folder.join(f).exists()).filter(|_| !fresh) {
            return Err(Exists { path: folder.join(file) }.into());
        }
        // Made and dropped: a folder that cannot be written fails now, not after hours.
        drop(fs::AtomicFile::create(&folder.join("manifest.jsonl"))?);
        let manifest = Manifest::open(folder)?;
        Ok(Self { folder: folder.to_owned(), manifest, info: Map::new() })
    }

    /// Adds to what the manifest says of the run.
    pub(crate) fn note(&mut self, key: &str, value: Value) {
        self.info.insert(key.to_owned(), value);
    }

    /// Writes one table and lists it.
    pub(crate) fn write<R: Record>(&mut self, file: &str, rows: &[R], provenance: &Provenance) -> Result<PartInfo> {
        let part = write_table(&self.folder.join(file), rows, provenance)?;
        self.manifest.append(part.clone(), self.info.clone())?;
        Ok(part)
    }
}

/// The file and folder parts of a path to one output file.
pub(crate) fn split(path: &Path) -> Result<(PathBuf, String)> {
    let name = path.file_name().and_then(|n| n.to_str());
    let name = name.ok_or_else(|| anyhow::anyhow!("--out {}: expected a file name", path.display()))?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    Ok((folder, name.to_owned()))
}

/// What an input file is, for provenance: its name and content.
pub(crate) fn input(path: &Path) -> Result<Value> {
    let fingerprint = fs::fingerprint(path)?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    Ok(json!({ "file": name, "sha256": fingerprint.sha256 }))
}
