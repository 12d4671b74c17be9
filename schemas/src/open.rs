//! Opening a Parquet file from an unknown source.
//!
//! The Parquet library checks most bad bytes, but it may panic, and it trusts the sizes in the footer. So the sizes are
//! first compared with the length of the file, and a panic of the library becomes an error.

use std::{fs::File, path::Path};

use arrow::record_batch::RecordBatch;
use epikv_words::caught;
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
        },
    },
    errors::ParquetError,
    file::metadata::{ColumnChunkMetaData, ParquetMetaData},
};

use crate::{
    commit,
    error::{Error, Result},
    fs, manifest,
};

/// More rows than any machine holds: a file that declares them is damaged or an attack.
const MOST_ROWS: i64 = 1 << 31;

/// More items than a list of any row has, such as the tokens of a trace.
const MOST_ITEMS: i64 = 1 << 23;

/// Opens the file and checks its footer. A file that the manifest beside it lists must be the one that it lists.
pub(crate) fn open(path: &Path) -> Result<(File, ArrowReaderMetadata)> {
    commit::check(path)?;
    let (file, metadata) = open_unlisted(path)?;
    manifest::check(path, &file)?;
    Ok((file, metadata))
}

/// Opens the file and checks its footer, whatever the manifest says of it.
pub(crate) fn open_unlisted(path: &Path) -> Result<(File, ArrowReaderMetadata)> {
    let file = fs::open(path)?;
    let length = file.metadata().map_err(fs::failed("read", path))?.len();
    // The embedded Arrow schema is ignored: types follow from Parquet alone, whoever wrote or rewrote the file.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(&file, options).map_err(|source| read_failed(path, source))?;
    check_sizes(path, length, metadata.metadata())?;
    Ok((file, metadata))
}

/// The batches of rows of a file. Only decoding is guarded: a failure of the code that takes what is handed out is a fault of
/// that code, not of the file.
pub(crate) struct Batches<'p> {
    path: &'p Path,
    reader: ParquetRecordBatchReader,
    declared: i64,
    /// Rows handed out.
    rows: usize,
}

impl<'p> Batches<'p> {
    pub(crate) fn new(
        path: &'p Path,
        file: File,
        metadata: ArrowReaderMetadata,
        columns: impl IntoIterator<Item = usize>,
        rows_at_once: usize,
    ) -> Result<Self> {
        let declared = metadata.metadata().file_metadata().num_rows();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns);
        guarded(path, || {
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                .with_projection(mask)
                .with_batch_size(rows_at_once)
                .build()
                .map_err(|source| read_failed(path, source))?;
            Ok(Self { path, reader, declared, rows: 0 })
        })
    }

    /// The result of `decode` for the number of the next batch's first row and the batch; `None` at the end.
    pub(crate) fn next<T>(&mut self, decode: impl FnOnce(usize, &RecordBatch) -> Result<T>) -> Result<Option<T>> {
        guarded(self.path, || {
            let Some(batch) = self.reader.next() else {
                check_count(self.path, self.declared, self.rows)?;
                return Ok(None);
            };
            let batch = batch.map_err(|error| read_failed(self.path, error.into()))?;
            let decoded = decode(self.rows, &batch)?;
            self.rows += batch.num_rows();
            Ok(Some(decoded))
        })
    }
}

/// Runs a decoder; a panic in it is an error that names the file.
pub(crate) fn guarded<T>(path: &Path, reader: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(reader).unwrap_or_else(|message| {
        Err(damaged(path, "its content", "pages that decode", &format!("a failure of the decoder ({message})")))
    })
}

pub(crate) fn read_failed(path: &Path, source: ParquetError) -> Error {
    Error::Parquet { action: "read", path: path.to_owned(), source }
}

fn damaged(path: &Path, place: impl Into<String>, expected: impl Into<String>, got: &dyn ToString) -> Error {
    Error::Damaged { path: path.to_owned(), place: place.into(), expected: expected.into(), got: got.to_string() }
}

/// Holds the sizes that the footer declares against each other and against the length of the file.
fn check_sizes(path: &Path, length: u64, metadata: &ParquetMetaData) -> Result<()> {
    let mut rows = 0_i64;
    for (at, group) in metadata.row_groups().iter().enumerate() {
        if !(0..=MOST_ROWS).contains(&group.num_rows()) {
            let expected = format!("0 to {MOST_ROWS} rows");
            return Err(damaged(path, format!("row group {at}"), expected, &group.num_rows()));
        }
        rows = rows.saturating_add(group.num_rows());
        for column in group.columns() {
            // A few bytes can stand for any number of equal values, so their number is bounded before they are read.
            if column.num_values() > group.num_rows().saturating_mul(MOST_ITEMS) {
                let place = format!("row group {at}, column {}", column.column_path());
                let got = format!("{} values in {} rows", column.num_values(), group.num_rows());
                return Err(damaged(path, place, format!("at most {MOST_ITEMS} values a row"), &got));
            }
            if !lies_within(column, length) {
                let place = format!("row group {at}, column {}", column.column_path());
                let got = format!("{} bytes from {}", column.compressed_size(), column.data_page_offset());
                return Err(damaged(path, place, format!("bytes within the {length} of the file"), &got));
            }
        }
    }
    let declared = metadata.file_metadata().num_rows();
    if declared != rows || rows > MOST_ROWS {
        return Err(damaged(path, "the footer", format!("{rows} rows, the sum of the row groups"), &declared));
    }
    Ok(())
}

fn lies_within(column: &ColumnChunkMetaData, length: u64) -> bool {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let (Ok(start), Ok(size)) = (u64::try_from(start), u64::try_from(column.compressed_size())) else {
        return false;
    };
    column.uncompressed_size() >= 0
        && column.num_values() >= 0
        && column.data_page_offset() >= 0
        && start.checked_add(size).is_some_and(|end| end <= length)
}

/// Checks that as many rows came as the footer declared.
pub(crate) fn check_count(path: &Path, declared: i64, got: usize) -> Result<()> {
    if u64::try_from(declared) == Ok(got as u64) {
        return Ok(());
    }
    Err(damaged(path, "its content", format!("{declared} rows, as the footer says"), &got))
}
