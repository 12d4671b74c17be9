//! Two Parquet files of one table: rows are matched by the table's key, columns by name.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use arrow::array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take};
use arrow::util::display::array_value_to_string;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Differences of a file that are shown.
const SHOWN: usize = 10;

/// What came out of comparing two files.
#[derive(Debug, Default)]
pub(crate) struct TableReport {
    /// Rows that were compared.
    pub(crate) rows: usize,
    /// Columns that were compared.
    pub(crate) columns: usize,
    /// Rows of the old file that were set aside.
    pub(crate) aside: usize,
    /// Rows that only the new file has.
    pub(crate) new_rows: usize,
    /// Columns that only the new file has.
    pub(crate) new_columns: Vec<String>,
    /// The first differences: row, column and both values.
    pub(crate) differences: Vec<String>,
}

impl TableReport {
    fn differs(&mut self, what: String) {
        if self.differences.len() < SHOWN {
            self.differences.push(what);
        }
    }
}

/// Compares two files of one table.
///
/// # Errors
/// If a file can't be read.
pub(crate) fn compare(old: &Path, new: &Path) -> Result<TableReport> {
    let mut report = TableReport::default();
    let keys = keys_of(old);
    let (old, new) = (read(old)?, read(new)?);
    let (old_rows, new_rows) = (Rows::of(&old, keys)?, Rows::of(&new, keys)?);
    report.aside = old_rows.aside;
    // Rows of the old file, and where the new file has them.
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for (key, row) in &old_rows.all {
        if let Some(&at) = new_rows.places.get(key) {
            from.push(*row as u64);
            to.push(at as u64);
        } else {
            report.differs(format!("row {row} ({key}): not in the new file"));
        }
    }
    report.rows = from.len();
    report.new_rows = new_rows.all.len().saturating_sub(from.len());
    let (from, to) = (UInt64Array::from(from), UInt64Array::from(to));
    for (field, column) in old.schema().fields().iter().zip(old.columns()) {
        let name = field.name();
        let Some(other) = new.column_by_name(name) else {
            report.differs(format!("column {name}: not in the new file"));
            continue;
        };
        if column.data_type() != other.data_type() {
            let (was, is) = (column.data_type(), other.data_type());
            report.differs(format!("column {name}: old type {was}, new type {is}"));
            continue;
        }
        report.columns += 1;
        let (was, is) = (take(column, &from, None)?, take(other, &to, None)?);
        // Equality of array data is of bytes, so of the bits of floats.
        if was.to_data() != is.to_data() {
            for at in (0..was.len()).filter(|&at| was.slice(at, 1).to_data() != is.slice(at, 1).to_data()) {
                let (row, values) = (from.value(at), [text(&was, at)?, text(&is, at)?]);
                report.differs(format!("row {row}, column {name}: old {}, new {}", values[0], values[1]));
            }
        }
    }
    let known = old.schema();
    let added = new
        .schema()
        .fields()
        .iter()
        .filter(|field| known.field_with_name(field.name()).is_err())
        .cloned()
        .collect::<Vec<_>>();
    for field in added {
        if !field.is_nullable() {
            report.differs(format!("column {}: new, and not nullable", field.name()));
        }
        report.new_columns.push(field.name().clone());
    }
    Ok(report)
}

/// The rows of a file that are compared.
struct Rows {
    /// Key and place, in file order.
    all: Vec<(String, usize)>,
    places: HashMap<String, usize>,
    aside: usize,
}

impl Rows {
    /// Without key columns, a row's key is its place.
    fn of(table: &RecordBatch, keys: &[&str]) -> Result<Self> {
        let keys: Vec<&ArrayRef> = keys.iter().filter_map(|name| table.column_by_name(name)).collect();
        let composition = table.column_by_name("composition").or_else(|| table.column_by_name("policy"));
        let mut rows = Self { all: Vec::new(), places: HashMap::new(), aside: 0 };
        for row in 0..table.num_rows() {
            if let Some(policy) = composition
                && draws_anew(&text(policy, row)?)
            {
                rows.aside += 1;
                continue;
            }
            let parts = keys.iter().map(|column| text(column, row)).collect::<Result<Vec<_>>>()?;
            let key = if parts.is_empty() { row.to_string() } else { parts.join(", ") };
            rows.places.insert(key.clone(), row);
            rows.all.push((key, row));
        }
        Ok(rows)
    }
}

/// Whether a policy draws for each layer or head: such a random score draws for each kept set since kept sets have their own
/// random numbers.
fn draws_anew(policy: &str) -> bool {
    let mut parts = policy.split(';');
    let is_random = parts.clone().any(|part| part == "random" || part == "score=random");
    is_random && parts.any(|part| matches!(part, "scope=per-layer" | "scope=per-head"))
}

/// The columns that name a row: those of the table that the file is named after.
fn keys_of(file: &Path) -> &'static [&'static str] {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    // Tables in parts are `NAME-PART.parquet`.
    let table = name.split('-').next().unwrap_or_default();
    let found = epikv_schemas::registry().iter().find(|spec| spec.name == table && spec.unique);
    found.map_or(&[], |spec| spec.sort_key)
}

fn text(column: &ArrayRef, row: usize) -> Result<String> {
    if column.is_null(row) { Ok("null".to_owned()) } else { Ok(array_value_to_string(column, row)?) }
}

fn read(file: &Path) -> Result<RecordBatch> {
    let opened = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(opened)?;
    let schema = builder.schema().clone();
    let batches = builder.build()?.collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}
