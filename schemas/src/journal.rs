//! Journals: what a run has finished, in a file that outlives it when it is killed.
//!
//! The first line says what determines the results; each result adds a line as soon as it is there. A line is a checksum and
//! JSON, so a damaged one is known and its result is made again. A last line without its end was cut by the kill.

use std::fs::{File, OpenOptions, remove_file};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::fs::failed;

/// Largest journal in bytes.
const MOST_BYTES: u64 = 1 << 33;

/// Characters of a checksum.
const CHECK: usize = 16;

/// A journal that is open for more lines.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal at `path`, and gives the results that it holds under the same head. What another head left there is
    /// dropped.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open<T: DeserializeOwned>(path: &Path, head: &Value) -> Result<(Self, Vec<T>)> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed("open", path))?;
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed("read", path))?;
        let (results, good) = results(&bytes, head);
        file.set_len(good as u64).map_err(failed("write", path))?;
        file.seek(SeekFrom::End(0)).map_err(failed("write", path))?;
        let mut journal = Self { path: path.to_owned(), file };
        if good == 0 {
            journal.add(head)?;
        }
        Ok((journal, results))
    }

    /// Adds a result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, result: &impl Serialize) -> Result<()> {
        let json = serde_json::to_string(result).map_err(|error| failed("write", &self.path)(error.into()))?;
        // In one write, so that a line is whole or last.
        let line = format!("{} {json}\n", checksum(json.as_bytes()));
        self.file.write_all(line.as_bytes()).map_err(failed("write", &self.path))
    }

    /// Removes it, once everything that it holds stands in the files of the run.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn remove(self) -> Result<()> {
        remove_file(&self.path).map_err(failed("remove", &self.path))
    }
}

/// The results under this head, and the bytes up to the end of the last whole line.
fn results<T: DeserializeOwned>(bytes: &[u8], head: &Value) -> (Vec<T>, usize) {
    let good = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let mut lines = bytes[..good].split_inclusive(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    match lines.next().and_then(content) {
        Some(first) if serde_json::from_slice::<Value>(first).ok().as_ref() == Some(head) => {
            (lines.filter_map(content).filter_map(|json| serde_json::from_slice(json).ok()).collect(), good)
        }
        _ => (Vec::new(), 0),
    }
}

/// The JSON of a line; `None` where it is not what was written.
fn content(line: &[u8]) -> Option<&[u8]> {
    let (check, json) = line.split_at_checked(CHECK)?;
    let json = json.strip_prefix(b" ")?;
    (checksum(json).as_bytes() == check).then_some(json)
}

/// The first digits of the SHA-256 of a line.
fn checksum(json: &[u8]) -> String {
    let hash = Sha256::digest(json);
    let first = hash.iter().take(CHECK / 2).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{first:0CHECK$x}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn damage_costs_the_lines_that_it_hits_and_another_head_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("j");
        let head = json!({"model": "m"});
        let open = |head: &Value| Journal::open::<u32>(&path, head).expect("a journal");
        let (mut journal, found) = open(&head);
        assert!(found.is_empty());
        for result in 10..14 {
            journal.add(&result).expect("written");
        }
        drop(journal);
        assert_eq!(open(&head).1, [10, 11, 12, 13]);

        let whole = std::fs::read(&path).expect("a file");
        // Every byte of a line counts, and a cut line is the last.
        let third = whole.split_inclusive(|&byte| byte == b'\n').take(3).map(<[u8]>::len).sum::<usize>();
        for at in third - 20..third - 1 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).expect("written");
            assert_eq!(open(&head).1, [10, 12, 13], "byte {at}");
        }
        std::fs::write(&path, &whole[..whole.len() - 1]).expect("written");
        let (mut journal, found) = open(&head);
        assert_eq!(found, [10, 11, 12]);
        journal.add(&99).expect("written");
        drop(journal);
        assert_eq!(open(&head).1, [10, 11, 12, 99]);
        assert!(open(&json!({"model": "n"})).1.is_empty());
        assert!(open(&head).1.is_empty(), "the other head replaced it");
        open(&head).0.remove().expect("removed");
        assert!(!path.exists());
    }
}
