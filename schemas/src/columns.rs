//! The columns of one batch while it is read.

use std::path::Path;

use arrow::{
    array::{Array, ArrayRef, AsArray},
    record_batch::RecordBatch,
};

use crate::{
    batch::check_words,
    error::{Error, Result},
    layer_column::layer_of,
    spec::{ColumnSpec, TableSpec},
};

/// The columns of one batch of rows.
pub struct Columns<'a> {
    pub(crate) path: &'a Path,
    pub(crate) first_row: usize,
    pub(crate) batch: &'a RecordBatch,
}

impl Columns<'_> {
    /// Number of rows of the batch.
    pub(crate) fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// A column that must not be null, converted by `values`.
    pub(crate) fn required<T>(
        &self,
        spec: &ColumnSpec,
        values: fn(&dyn Array) -> Vec<Option<T>>,
    ) -> Result<Vec<Option<T>>> {
        self.optional(spec, values)?.ok_or_else(|| Error::MissingColumn {
            path: self.path.to_owned(),
            column: spec.name.to_owned(),
            expected: spec.kind.name().to_owned(),
        })
    }

    /// A column that may be missing from an older file, converted by `values`.
    pub(crate) fn optional<T>(
        &self,
        spec: &ColumnSpec,
        values: fn(&dyn Array) -> Vec<Option<T>>,
    ) -> Result<Option<Vec<Option<T>>>> {
        let Some(array) = self.batch.column_by_name(spec.name) else {
            return Ok(None);
        };
        if let Some(lists) = array.as_list_opt::<i32>() {
            let holed = |list: &Option<ArrayRef>| list.as_ref().is_some_and(|items| items.null_count() > 0);
            if let Some(row) = lists.iter().position(|list| holed(&list)) {
                return Err(self.null_value(spec, row));
            }
        }
        Ok(Some(values(array)))
    }

    /// The columns of a family, by layer.
    pub(crate) fn family(&self, family: &str) -> Vec<(u16, &ArrayRef)> {
        let schema = self.batch.schema_ref();
        let named = schema.fields().iter().zip(self.batch.columns());
        let mut found: Vec<_> =
            named.filter_map(|(field, array)| Some((layer_of(family, field.name())?, array))).collect();
        found.sort_by_key(|(layer, _)| *layer);
        found
    }

    /// The error of a null, or of a null inside a list, where there may be none.
    pub(crate) fn null_value(&self, spec: &ColumnSpec, row: usize) -> Error {
        Error::NullValue {
            path: self.path.to_owned(),
            column: spec.name.to_owned(),
            row: self.first_row + row,
            expected: spec.kind.name().to_owned(),
        }
    }

    pub(crate) fn check_words(&self, table: &TableSpec) -> Result<()> {
        for column in table.columns {
            if let Some(array) = self.batch.column_by_name(column.name) {
                check_words(self.path, self.first_row, column, array)?;
            }
        }
        Ok(())
    }
}
