//! The files of a Hugging Face folder, on the disk or embedded in the program.

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Configuration files of real models have a few kilobytes, an index or a tokenizer of a large one some megabytes.
const MAX_TEXT_BYTES: u64 = 64 << 20;

/// Files that belong to one model, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFiles {
    /// A folder.
    Disk(PathBuf),
    /// Part of the program.
    Embedded {
        /// Name of the model, which errors show in place of a folder.
        name: &'static str,
        /// Name and content of each file.
        files: &'static [(&'static str, &'static [u8])],
    },
}

/// What a file can be read through.
pub(crate) trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

impl ModelFiles {
    /// Where a file is, for errors and provenance.
    pub fn path(&self, file: &str) -> PathBuf {
        self.place().join(file)
    }

    /// The folder, or the name of the embedded model.
    pub fn place(&self) -> &Path {
        match self {
            Self::Disk(folder) => folder,
            Self::Embedded { name, .. } => Path::new(name),
        }
    }

    /// Whether there is something of this name. That it is a file is seen when it is opened.
    pub(crate) fn has(&self, file: &str) -> bool {
        match self {
            Self::Disk(folder) => folder.join(file).exists(),
            Self::Embedded { .. } => self.embedded(file).is_some(),
        }
    }

    /// A file and its size in bytes.
    pub(crate) fn open(&self, file: &str) -> Result<(Box<dyn ReadSeek>, u64)> {
        let path = self.path(file);
        match self {
            Self::Disk(_) => {
                let open = File::open(&path).map_err(Error::io(&path))?;
                let about = open.metadata().map_err(Error::io(&path))?;
                if !about.is_file() {
                    return Err(Error::NotAFile { path });
                }
                Ok((Box::new(open), about.len()))
            }
            Self::Embedded { .. } => {
                let content = self.embedded(file).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound));
                let content = content.map_err(Error::io(&path))?;
                Ok((Box::new(Cursor::new(content)), content.len() as u64))
            }
        }
    }

    /// The whole content of a file that is no weight file.
    pub(crate) fn read(&self, file: &str) -> Result<Vec<u8>> {
        let (mut open, bytes) = self.open(file)?;
        let path = self.path(file);
        if bytes > MAX_TEXT_BYTES {
            return Err(Error::Damaged {
                path,
                what: "size of the file".to_owned(),
                expected: format!("at most {MAX_TEXT_BYTES} bytes"),
                got: format!("{bytes} bytes"),
            });
        }
        let mut content = Vec::with_capacity(bytes as usize);
        // A file may grow while it is read.
        open.by_ref().take(MAX_TEXT_BYTES).read_to_end(&mut content).map_err(Error::io(&path))?;
        Ok(content)
    }

    fn embedded(&self, file: &str) -> Option<&'static [u8]> {
        match self {
            Self::Disk(_) => None,
            Self::Embedded { files, .. } => files.iter().find(|(name, _)| *name == file).map(|(_, content)| *content),
        }
    }
}

impl From<&Path> for ModelFiles {
    fn from(folder: &Path) -> Self {
        Self::Disk(folder.to_owned())
    }
}

impl From<&PathBuf> for ModelFiles {
    fn from(folder: &PathBuf) -> Self {
        Self::Disk(folder.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_answer_alike() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.json"), "{}").unwrap();
        let embedded = ModelFiles::Embedded { name: "small", files: &[("a.json", b"{}")] };
        for files in [ModelFiles::from(folder.path()), embedded] {
            assert!(files.has("a.json") && !files.has("b.json"));
            assert_eq!(files.read("a.json").unwrap(), b"{}");
            assert_eq!(files.open("a.json").unwrap().1, 2);
            let error = files.read("b.json").unwrap_err();
            assert!(matches!(&error, Error::Io { path, .. } if *path == files.path("b.json")), "{error}");
        }
    }
}
