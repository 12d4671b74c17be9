//! The few file operations of the toolkit. Each error names the path; a file written here appears whole or not at all.

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::{Error, Result};
pub use crate::json_lines::{JsonLines, json_lines};

/// Size in bytes and sha256, in lower-case hexadecimal digits, of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Size.
    pub bytes: u64,
    /// Hash of the content.
    pub sha256: String,
}

const CREATE_FOLDER: &str = "create folder";

/// Makes a closure that gives an I/O error its place.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::IsADirectory => Error::OtherKind { path, expected: "a file", got: "a folder" },
        // Made, a folder may be there; what else is there is in its way.
        io::ErrorKind::AlreadyExists if action == CREATE_FOLDER => {
            Error::OtherKind { path, expected: "a folder", got: "a file" }
        }
        io::ErrorKind::NotADirectory => {
            Error::OtherKind { path, expected: "a place in a folder", got: "a file on the way" }
        }
        _ => Error::Io { action, path, source },
    }
}

/// Opens a file for reading.
pub fn open(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(failed("open", path))?;
    // On Unix a folder can be opened, and only a later read fails with a less clear error.
    if file.metadata().map_err(failed("open", path))?.is_dir() {
        return Err(failed("open", path)(io::ErrorKind::IsADirectory.into()));
    }
    Ok(file)
}

/// Reads a file of at most `limit` bytes. A larger one, or an endless one such as a device, is an error.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed("read", path))?;
    let got = bytes.len() as u64;
    if got > limit {
        return Err(Error::TooLarge { path: path.to_owned(), limit, got });
    }
    Ok(bytes)
}

/// Reads a UTF-8 file of at most `limit` bytes.
pub fn read_text(path: &Path, limit: u64) -> Result<String> {
    String::from_utf8(read(path, limit)?)
        .map_err(|error| Error::NotText { path: path.to_owned(), offset: error.utf8_error().valid_up_to() })
}

/// Makes a folder and those above it, where they are missing.
pub fn create_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(failed(CREATE_FOLDER, path))
}

/// Size and hash of a file, read in pieces.
pub fn fingerprint(path: &Path) -> Result<Fingerprint> {
    fingerprint_of(path, &open(path)?)
}

/// Size and hash of an open file, from its beginning. Its position is the beginning again afterwards.
pub(crate) fn fingerprint_of(path: &Path, mut file: &File) -> Result<Fingerprint> {
    let mut sink = Hashing::new(io::sink());
    // A pipe has one beginning; it is only read.
    let from_start = |mut file: &File| if is_regular(file) { file.rewind() } else { Ok(()) };
    let copied = from_start(file).and_then(|()| io::copy(&mut BufReader::with_capacity(1 << 18, &mut file), &mut sink));
    copied.and_then(|_| from_start(file)).map_err(failed("read", path))?;
    Ok(sink.fingerprint())
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Writes a whole file at once: either the new content stands there afterwards, or what was there before.
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<Fingerprint> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content).map_err(failed("write to", path))?;
    file.commit()
}

/// A file under construction: a temporary one in the folder of the final one, which [`commit`](Self::commit) renames.
/// Dropping it without a commit, after an error or a panic, removes it.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    writer: Hashing<BufWriter<NamedTempFile>>,
}

impl AtomicFile {
    /// Starts the file that will stand at `path`. Fails at once where the folder is missing or not writable.
    pub fn create(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Err(failed("create", path)(io::ErrorKind::IsADirectory.into()));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tmp-");
        #[cfg(unix)]
        {
            // Temporary files are private by default, but this one becomes a result that others may read.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder_of(path)).map_err(failed("create", path))?;
        Ok(Self { path: path.to_owned(), writer: Hashing::new(BufWriter::new(file)) })
    }

    /// Makes the file durable under its name: flush, fsync, rename, fsync of the folder.
    pub fn commit(self) -> Result<Fingerprint> {
        let path = self.path;
        let fingerprint = self.writer.fingerprint();
        let file = self.writer.inner.into_inner().map_err(|error| failed("write to", &path)(error.into_error()))?;
        file.as_file().sync_all().map_err(failed("write to", &path))?;
        file.persist(&path).map_err(|error| failed("replace", &path)(error.error))?;
        sync_folder(folder_of(&path))?;
        Ok(fingerprint)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The folder that a path lies in; the current one for a bare name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes a rename or a new file in the folder durable. Only Unix lets a folder be opened for that.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        let opened = File::open(folder).map_err(failed("open", folder))?;
        opened.sync_all().map_err(failed("write to", folder))?;
    }
    Ok(())
}

/// A writer that hashes and counts what passes through.
#[derive(Debug)]
struct Hashing<W> {
    inner: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> Hashing<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint { bytes: self.bytes, sha256: format!("{:x}", self.hasher.clone().finalize()) }
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
