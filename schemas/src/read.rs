//! Reading a table. Everything in the file is checked before it is used.

use std::{fs::File, path::Path};

use arrow::{
    datatypes::{DataType, Schema},
    record_batch::RecordBatch,
};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use crate::{
    columns::Columns,
    error::{Error, Result},
    open::{self, Batches},
    provenance::Provenance,
    record::Record,
    spec::{TableSpec, Version},
};

/// Reads all rows of a file, in file order, and its provenance.
///
/// Nullable columns that the file lacks are null, columns that this version does not know are skipped.
///
/// # Errors
/// Another table or major version, a missing column, another type, a null or word where the schema has none, a cut or
/// damaged file. Whatever the bytes are, the answer is an error and not a panic.
pub fn read_table<R: Record>(path: &Path) -> Result<(Vec<R>, Provenance)> {
    let mut rows = Vec::new();
    let provenance = read_in_parts(path, |part| rows.extend(part))?;
    Ok((rows, provenance))
}

/// As [`read_table`], for a file that the run itself has written and not listed yet: the manifest may list an older one.
///
/// # Errors
/// As [`read_table`], except that the file may differ from the manifest.
pub fn read_unlisted<R: Record>(path: &Path) -> Result<Vec<R>> {
    let mut rows = Vec::new();
    read_with(path, open::open_unlisted, |part| rows.extend(part))?;
    Ok(rows)
}

/// As [`read_table`], handing out the rows part by part: for files that are not to lie in memory.
///
/// # Errors
/// As [`read_table`]; parts that came before a damaged one have been handed out.
pub fn read_in_parts<R: Record>(path: &Path, each: impl FnMut(Vec<R>)) -> Result<Provenance> {
    read_with(path, open::open, each)
}

fn read_with<R: Record>(
    path: &Path,
    opened: impl FnOnce(&Path) -> Result<(File, ArrowReaderMetadata)>,
    mut each: impl FnMut(Vec<R>),
) -> Result<Provenance> {
    let table = R::table();
    let (file, metadata, provenance, version, wanted) = open::guarded(path, || {
        let (file, metadata) = opened(path)?;
        let provenance = Provenance::from_metadata(path, metadata.metadata().file_metadata().key_value_metadata())?;
        let version = check_version(path, table, &provenance)?;
        let wanted = check_columns(path, table, metadata.schema())?;
        Ok((file, metadata, provenance, version, wanted))
    })?;
    let mut batches = Batches::new(path, file, metadata, wanted, table.rows_at_once())?;
    let decode = |first_row: usize, batch: &RecordBatch| {
        let columns = Columns { path, first_row, batch };
        // A newer minor version may have added words, which this one passes on.
        if version <= table.version {
            columns.check_words(table)?;
        }
        R::read(&columns)
    };
    while let Some(rows) = batches.next(decode)? {
        each(rows);
    }
    Ok(provenance)
}

pub(crate) fn check_version(path: &Path, table: &'static TableSpec, provenance: &Provenance) -> Result<Version> {
    let path = || path.to_owned();
    let Some(schema) = provenance.get("schema") else {
        return Err(Error::NoSchema { path: path(), expected: table.id() });
    };
    let got = schema.as_str().map_or_else(|| schema.to_string(), str::to_owned);
    let version = got.strip_prefix(table.name).and_then(|rest| rest.strip_prefix('/')?.parse::<Version>().ok());
    let Some(version) = version else {
        return Err(Error::OtherTable { path: path(), expected: table.name, got });
    };
    if version.major != table.version.major {
        return Err(Error::OtherMajor { path: path(), table: table.name, expected: table.version, got: version });
    }
    Ok(version)
}

/// Checks presence and types, and returns the places of the columns to read.
pub(crate) fn check_columns(path: &Path, table: &TableSpec, schema: &Schema) -> Result<Vec<usize>> {
    let mut wanted = Vec::new();
    for column in table.columns {
        let before = wanted.len();
        for (at, field) in schema.fields().iter().enumerate().filter(|(_, field)| column.is_named(field.name())) {
            if !column.kind.accepts(field.data_type()) {
                return Err(Error::WrongType {
                    path: path.to_owned(),
                    column: field.name().clone(),
                    expected: column.kind.name().to_owned(),
                    got: type_name(field.data_type()),
                });
            }
            wanted.push(at);
        }
        if wanted.len() == before && !column.nullable {
            return Err(Error::MissingColumn {
                path: path.to_owned(),
                column: column.name.to_owned(),
                expected: column.kind.name().to_owned(),
            });
        }
    }
    Ok(wanted)
}

/// Arrow types in the words of the schema pages where there are such words.
fn type_name(got: &DataType) -> String {
    use crate::spec::Kind::{Bool, F32, F64, I16, I32, I64, ListI32, Utf8};
    let known = [Bool, I16, I32, I64, F32, F64, Utf8, ListI32].into_iter().find(|kind| kind.accepts(got));
    known.map_or_else(|| got.to_string(), |kind| kind.name().to_owned())
}
