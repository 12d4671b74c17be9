//! The list of a run folder's finished files: one JSON line each in `manifest.jsonl`, added when the file is in place.
//!
//! A data file without a line is unfinished work of an interrupted run. A crash or a full disk can leave a last line
//! without its end; that line is dropped. Any other broken line is an error.

use std::{
    fs::{File, OpenOptions},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    error::{Error, Result},
    fs,
};

/// A finished file, as the manifest records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartInfo {
    /// File name, without its folder.
    pub file: String,
    /// Number of rows.
    pub rows: u64,
    /// Hash of the file in lower-case hexadecimal digits.
    pub sha256: String,
    /// Size of the file.
    pub bytes: u64,
}

/// Name of the manifest in a run folder.
const FILE: &str = "manifest.jsonl";

/// More than a million lines; a larger file is not a manifest of ours.
const MOST_BYTES: u64 = 1 << 30;

/// A finished file and notes of the run about it: started, finished, host, threads, batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The file.
    #[serde(flatten)]
    pub part: PartInfo,
    /// Free-form facts, which determine no value of the file.
    #[serde(flatten)]
    pub info: Map<String, Value>,
}

/// The manifest of one run folder.
#[derive(Debug)]
pub struct Manifest {
    folder: PathBuf,
    entries: Vec<Entry>,
    /// Bytes of the file up to the end of the last whole entry; the next entry begins there.
    whole_bytes: u64,
}

impl Manifest {
    /// Reads the manifest of a folder; an empty one where there is none yet. Changes nothing on disk.
    ///
    /// # Errors
    /// A broken line that is not a half-written last one, or an entry that names a file outside the folder.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let bytes = match fs::read(&path, MOST_BYTES) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes?,
        };
        let mut manifest = Self { folder: folder.to_owned(), entries: Vec::new(), whole_bytes: 0 };
        for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            match serde_json::from_slice::<Entry>(line) {
                Ok(entry) => manifest.entries.push(entry),
                Err(_) if !line.ends_with(b"\n") => break,
                Err(source) => {
                    return Err(Error::BadManifestLine { path, line: at + 1, source });
                }
            }
            manifest.whole_bytes += line.len() as u64;
        }
        match manifest.entries.iter().find(|entry| !is_bare_name(&entry.part.file)) {
            Some(entry) => Err(Error::OutsideFolder { path, got: entry.part.file.clone() }),
            None => Ok(manifest),
        }
    }

    /// Path of the manifest.
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// All entries in the order of their lines; a file that was written again has several.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds a finished file and makes the line durable before it returns.
    ///
    /// # Panics
    /// If a note has the name of a field of [`PartInfo`], since the line could not be read back.
    pub fn append(&mut self, part: PartInfo, info: Map<String, Value>) -> Result<()> {
        let taken = ["file", "rows", "sha256", "bytes"].iter().find(|name| info.contains_key(**name));
        assert!(taken.is_none(), "{taken:?} is the name of a field, not of a note");
        let path = self.path();
        let entry = Entry { part, info };
        if !is_bare_name(&entry.part.file) {
            return Err(Error::OutsideFolder { path, got: entry.part.file });
        }
        let mut text = serde_json::to_vec(&entry).map_err(|source| Error::BadManifestLine {
            path: path.clone(),
            line: self.entries.len() + 1,
            source,
        })?;
        text.push(b'\n');
        self.whole_bytes = self.write_line(&path, &text).map_err(fs::failed("append to", &path))?;
        if self.entries.is_empty() {
            fs::sync_folder(&self.folder)?; // the manifest itself may be new
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Writes a line after the last whole one, over whatever an interrupted run left there. Returns the new length.
    fn write_line(&self, path: &Path, line: &[u8]) -> std::io::Result<u64> {
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        file.set_len(self.whole_bytes)?;
        let mut end = file.seek(SeekFrom::End(0))?;
        if end > 0 && !ends_with_newline(&mut file)? {
            file.write_all(b"\n")?;
            end += 1;
        }
        let written = file.write_all(line).and_then(|()| file.sync_all());
        if written.is_err() {
            // Best effort: a rest of the line, if it stays, is dropped by the next reader.
            file.set_len(end).ok();
        }
        written.map(|()| end + line.len() as u64)
    }

    /// Checks every file against the hash of its last entry.
    ///
    /// # Errors
    /// The first file that is missing or changed.
    pub fn verify(&self) -> Result<()> {
        let superseded =
            |at: usize, entry: &Entry| self.entries[at + 1..].iter().any(|e| e.part.file == entry.part.file);
        let mut last = self.entries.iter().enumerate().filter(|(at, entry)| !superseded(*at, entry));
        last.try_for_each(|(_, entry)| self.verify_part(&entry.part))
    }

    /// Checks one file against its recorded hash.
    pub fn verify_part(&self, part: &PartInfo) -> Result<()> {
        let path = self.folder.join(&part.file);
        let got = fs::fingerprint(&path)?.sha256;
        if got == part.sha256 {
            return Ok(());
        }
        Err(Error::PartChanged { path, expected: part.sha256.clone(), got })
    }
}

/// Checks a file that was opened against the manifest of its folder. A file that no manifest lists is not checked.
pub(crate) fn check(path: &Path, file: &File) -> Result<()> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Ok(());
    };
    let manifest = Manifest::open(fs::folder_of(path))?;
    let Some(entry) = manifest.entries.iter().rfind(|entry| entry.part.file == name) else {
        return Ok(());
    };
    let got = fs::fingerprint_of(path, file)?.sha256;
    if got == entry.part.sha256 {
        return Ok(());
    }
    Err(Error::PartChanged { path: path.to_owned(), expected: entry.part.sha256.clone(), got })
}

/// A manifest may come from elsewhere, and its names are opened: they must stay in the folder.
pub(crate) fn is_bare_name(file: &str) -> bool {
    !file.is_empty() && Path::new(file).file_name().is_some_and(|name| name == file)
}

fn ends_with_newline(file: &mut std::fs::File) -> std::io::Result<bool> {
    use std::io::Read;
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
