//! Writing a table: sort, check, encode, and only then put the file in place.

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use arrow::{datatypes::Schema, record_batch::RecordBatch};
use parquet::{arrow::ArrowWriter, errors::ParquetError};

use crate::{
    batch::Batch,
    encoding,
    error::{Error, Result},
    fs::{self, AtomicFile},
    manifest::PartInfo,
    provenance::Provenance,
    record::Record,
};

/// Writes the rows, sorted by the table's key, to a Parquet file. Equal rows and provenance give equal bytes.
///
/// # Errors
/// NaN, a word that the column does not know, two rows of the same key in a table of unique keys, rows with other
/// layers, or an I/O failure. In every case the folder is as it was before.
pub fn write_table<R: Record>(path: &Path, rows: &[R], provenance: &Provenance) -> Result<PartInfo> {
    let table = R::table();
    let mut sorted: Vec<&R> = rows.iter().collect();
    sorted.sort_by(|a, b| a.compare(b));
    check_keys(path, &sorted)?;

    let mut layers = BTreeMap::new();
    let mut groups = Groups { rest: &sorted, most_rows: table.rows_at_once() };
    let first = groups.next().unwrap_or_default();
    let batch = to_batch(path, 0, first, &mut layers)?;

    let file = AtomicFile::create(path)?;
    let properties = encoding::properties(table, &batch.schema(), provenance);
    let failed = |source| write_failed(path, source);
    // The keys stand in the Arrow schema as well: pyarrow keeps those when it writes a file again, and drops the footer's.
    let keys: BTreeMap<_, _> = provenance.with_schema(&table.id()).to_texts().collect();
    let schema = Arc::new(Schema::clone(&batch.schema()).with_metadata(keys));
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(failed)?;
    writer.write(&batch).map_err(failed)?;
    writer.flush().map_err(failed)?;
    let mut row = first.len();
    for group in groups {
        writer.write(&to_batch(path, row, group, &mut layers)?).map_err(failed)?;
        writer.flush().map_err(failed)?;
        row += group.len();
    }
    let written = writer.into_inner().map_err(failed)?.commit()?;

    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(PartInfo { file, rows: rows.len() as u64, sha256: written.sha256, bytes: written.bytes })
}

fn check_keys<R: Record>(path: &Path, sorted: &[&R]) -> Result<()> {
    let same = |pair: &&[&R]| pair[0].compare(pair[1]).is_eq();
    match sorted.windows(2).find(same) {
        Some(pair) if R::table().unique => Err(Error::DuplicateKey {
            path: path.to_owned(),
            columns: R::table().sort_key.join(", "),
            key: pair[0].key(),
        }),
        _ => Ok(()),
    }
}

fn to_batch<R: Record>(
    path: &Path,
    first_row: usize,
    rows: &[&R],
    layers: &mut BTreeMap<&'static str, Vec<u16>>,
) -> Result<RecordBatch> {
    let key = |row: usize| rows[row].key();
    let mut batch = Batch { path, first_row, key: &key, layers, fields: Vec::new(), arrays: Vec::new() };
    R::write(rows, &mut batch)?;
    let schema = Arc::new(Schema::new(batch.fields));
    RecordBatch::try_new(schema, batch.arrays).map_err(|error| write_failed(path, error.into()))
}

/// A full disk reaches us wrapped by the Parquet library; it is unwrapped so that it reads like any other I/O error.
fn write_failed(path: &Path, source: ParquetError) -> Error {
    match source {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => fs::failed("write to", path)(*io),
            Err(inner) => {
                Error::Parquet { action: "write", path: path.to_owned(), source: ParquetError::External(inner) }
            }
        },
        source => Error::Parquet { action: "write", path: path.to_owned(), source },
    }
}

/// Cuts sorted rows into row groups: as many whole traces as fit, and a longer trace in a group of its own.
struct Groups<'a, R> {
    rest: &'a [&'a R],
    most_rows: usize,
}

impl<'a, R: Record> Iterator for Groups<'a, R> {
    type Item = &'a [&'a R];

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest;
        if rest.is_empty() {
            return None;
        }
        let is_boundary = |at: &usize| *at == rest.len() || !rest[at - 1].same_group(rest[*at]);
        let fitting = (1..=rest.len().min(self.most_rows)).rev().find(is_boundary);
        let end = fitting.or_else(|| (self.most_rows..=rest.len()).find(is_boundary)).unwrap_or(rest.len());
        let (group, rest) = rest.split_at(end);
        self.rest = rest;
        Some(group)
    }
}
