//! Errors of record files. Each error names the file, the place in it, what was expected and what was found.

use std::{io, path::PathBuf};

use epikv_words::Hint;

use crate::spec::Version;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file could not be written, read or trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused: no such file, no permission, disk full.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, as a verb: `read`, `create`, `write to`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A folder stands where a file should, or the other way round.
    #[error("{}: expected {expected}, got {got}", path.display())]
    OtherKind {
        /// The path.
        path: PathBuf,
        /// What should stand there.
        expected: &'static str,
        /// What does.
        got: &'static str,
    },
    /// A file is larger than its reader accepts.
    #[error("{} is too large, expected: at most {limit} bytes, got: {got} bytes or more", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Most bytes accepted.
        limit: u64,
        /// Bytes found so far.
        got: u64,
    },
    /// A text file holds bytes that are not UTF-8.
    #[error("{} is not text, expected: UTF-8, got: an invalid byte at offset {offset}", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// A line of a text file is longer than its reader accepts.
    #[error("{}, line {line} is too long, expected: at most {limit} bytes, got: more", path.display())]
    LongLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Most bytes accepted.
        limit: u64,
    },
    /// A line of a file of JSON lines is not what it should be.
    #[error("{}, line {line}: expected {expected}, got {got}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What would be accepted.
        expected: &'static str,
        /// How the line begins, or where it stops being text.
        got: String,
        /// The cause, with the column, where the line is text.
        source: Option<serde_json::Error>,
    },
    /// The Parquet library could not write or decode the file.
    #[error("cannot {action} {} as Parquet", path.display())]
    Parquet {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: parquet::errors::ParquetError,
    },
    /// A Parquet file contradicts itself.
    #[error("{} is damaged at {place}, expected: {expected}, got: {got}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        place: String,
        /// What a sound file has there.
        expected: String,
        /// What this one has.
        got: String,
    },
    /// The file does not say which table it holds.
    #[error("{} names no schema, expected: epi.schema {expected}, got: no such key", path.display())]
    NoSchema {
        /// The file.
        path: PathBuf,
        /// The schema that the reader expects, `name/major.minor`.
        expected: String,
    },
    /// The file holds another table.
    #[error("{} holds another table, expected: {expected}, got: {got}", path.display())]
    OtherTable {
        /// The file.
        path: PathBuf,
        /// Name of the table that the reader expects.
        expected: &'static str,
        /// What `epi.schema` says.
        got: String,
    },
    /// The file was written under another major version of its schema.
    #[error("{} has another major version of {table}, expected: {expected}, got: {got}", path.display())]
    OtherMajor {
        /// The file.
        path: PathBuf,
        /// Name of the table.
        table: &'static str,
        /// Version that this program reads.
        expected: Version,
        /// Version of the file.
        got: Version,
    },
    /// A column that may not be null is not in the file.
    #[error("{} lacks column {column}, expected: {expected}, got: no such column", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type.
        expected: String,
    },
    /// A column has another type.
    #[error("{} has the wrong type in column {column}, expected: {expected}, got: {got}", path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Type in the schema.
        expected: String,
        /// Type in the file.
        got: String,
    },
    /// A column that may not be null holds a null.
    #[error("{} has a null in column {column}, row {row}, expected: {expected}, got: null", path.display())]
    NullValue {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// 0-based row of the file.
        row: usize,
        /// Type of the column.
        expected: String,
    },
    /// A float column holds NaN, or a signal an infinity. Undefined values are null.
    #[error("{} has {got} in column {column}, row {row} ({key}), expected: a number or null, got: {got}", path.display())]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// 0-based row of the sorted file.
        row: usize,
        /// Sort key of the row.
        key: String,
        /// The value.
        got: f32,
    },
    /// A column of fixed words holds another word.
    #[error("{} has an unknown word in column {column}, row {row}, expected: one of {expected}, got: {got:?}", path.display())]
    UnknownWord {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// 0-based row of the file.
        row: usize,
        /// The words of the column, joined by `|`.
        expected: String,
        /// The word found.
        got: String,
    },
    /// Two rows have the same key.
    #[error("{} has two rows of the same key, expected: one row for each {columns}, got: two of {key}", path.display())]
    DuplicateKey {
        /// The file.
        path: PathBuf,
        /// Names of the key columns.
        columns: String,
        /// The key that came twice.
        key: String,
    },
    /// Rows of one table carry values for different layers.
    #[error("{} has other layers in column {column}, row {row}, expected: {expected:?}, got: {got:?}", path.display())]
    OtherLayers {
        /// The file.
        path: PathBuf,
        /// Name of the column family.
        column: String,
        /// 0-based row of the sorted file.
        row: usize,
        /// Layers of the first row.
        expected: Vec<u16>,
        /// Layers of this row.
        got: Vec<u16>,
    },
    /// A provenance value is not JSON.
    #[error("{} has a broken provenance value under {key}, expected: JSON", path.display())]
    BadProvenance {
        /// The file.
        path: PathBuf,
        /// Metadata key.
        key: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// A line of a manifest, other than a half-written last one, is not an entry.
    #[error("{} has a broken line {line}, expected: a JSON object with file, rows, sha256 and bytes", path.display())]
    BadManifestLine {
        /// The manifest.
        path: PathBuf,
        /// 1-based line.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// A manifest entry names a file outside its folder.
    #[error("{} names a file outside its folder, expected: a bare file name, got: {got:?}", path.display())]
    OutsideFolder {
        /// The manifest.
        path: PathBuf,
        /// The name found.
        got: String,
    },
    /// Another run is writing the file.
    #[error("{} is being written by another run, expected: one run at a time", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A run was stopped while it put its files in place.
    #[error("{} belongs to a run that was stopped while it put its files in place", path.display())]
    Unfinished {
        /// The file.
        path: PathBuf,
    },
    /// A commit record is not one.
    #[error("{} is not a commit record, expected: JSON with staged, moved, in_place and info", path.display())]
    BadCommit {
        /// The record.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// A file is not the one that the manifest recorded.
    #[error("{} is not the file that its manifest records, expected: sha256 {expected}, got: {got}", path.display())]
    PartChanged {
        /// The file.
        path: PathBuf,
        /// Hash in the manifest.
        expected: String,
        /// Hash of the file.
        got: String,
    },
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } => return io_hint(source.kind()),
            Self::OtherKind { expected, .. } => format!("check the path: it must be that of {expected}"),
            Self::Parquet { action: "read", .. } | Self::Damaged { .. } => {
                "the file may be cut short or not Parquet at all; compare its sha256 with manifest.jsonl, or make it again"
                    .to_owned()
            }
            Self::LongLine { .. } => "JSON lines have one object a line, not a list over several lines".to_owned(),
            Self::NoSchema { .. } => {
                "only files written by epikv carry a schema; a tool that rewrites them must keep the key-value metadata"
                    .to_owned()
            }
            Self::OtherTable { expected, .. } => format!("give the path of a {expected} file"),
            Self::OtherMajor { expected, got, .. } if got > expected => {
                "the file is newer than this program: use a newer epikv".to_owned()
            }
            Self::OtherMajor { .. } => "make the file again with this version of epikv".to_owned(),
            Self::MissingColumn { .. } | Self::WrongType { .. } => {
                "`epikv schema` prints the columns and types of every file".to_owned()
            }
            Self::BadManifestLine { .. } => {
                "start over with --fresh, or delete the line if the file it names is not needed".to_owned()
            }
            Self::InUse { .. } => "wait until it has ended, or give another --out".to_owned(),
            Self::Unfinished { .. } => "run the command that made it once more: it completes the files".to_owned(),
            Self::BadCommit { .. } => "remove the file and run the command that made the folder again with --fresh".to_owned(),
            Self::PartChanged { .. } => {
                "the file was edited or replaced after the run; start over with --fresh, or restore it".to_owned()
            }
            _ => return None,
        };
        Some(hint)
    }
}

fn io_hint(kind: io::ErrorKind) -> Option<String> {
    let hint = match kind {
        io::ErrorKind::NotFound => "check the path; folders on the way must exist",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "check the permissions, or choose another place with --out"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free some space and run again; existing files are unchanged"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}
