//! A table of signals column by column, for files that do not fit into memory: 10 million tokens of 32 layers are 1.3 GB a
//! family, one column of them is 40 MB.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::{Float32Type, Int32Type},
};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use crate::{
    error::{Error, Result},
    layer_column::{column_name, layer_of},
    open::{self, Batches},
    provenance::Provenance,
    read::{check_columns, check_version},
    record::Record,
    spec::{Kind, TableSpec},
};

/// A column of numbers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberColumn {
    /// The column of the table, or the family that it belongs to.
    pub name: &'static str,
    /// Its layer, where it is one of a family.
    pub layer: Option<u16>,
}

/// An open file whose columns are read one at a time, by any number of threads. It holds the footer only.
#[derive(Debug)]
pub struct ColumnFile {
    path: PathBuf,
    table: &'static TableSpec,
    metadata: ArrowReaderMetadata,
    provenance: Provenance,
}

impl ColumnFile {
    /// Opens a file of that table and checks its columns.
    ///
    /// # Errors
    /// As [`read_table`](crate::read_table), short of what lies in the pages.
    pub fn open<R: Record>(path: &Path) -> Result<Self> {
        let table = R::table();
        open::guarded(path, || {
            let (_, metadata) = open::open(path)?;
            let footer = metadata.metadata().file_metadata();
            let provenance = Provenance::from_metadata(path, footer.key_value_metadata())?;
            check_version(path, table, &provenance)?;
            check_columns(path, table, metadata.schema())?;
            Ok(Self { path: path.to_owned(), table, metadata, provenance })
        })
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What made the file.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The columns of f32 in the order of the table, those of a family by layer.
    pub fn number_columns(&self) -> Vec<NumberColumn> {
        let fields = self.metadata.schema().fields();
        let mut all = Vec::new();
        for spec in self.table.columns.iter().filter(|spec| spec.kind == Kind::F32) {
            if spec.per_layer {
                let mut layers: Vec<u16> = fields.iter().filter_map(|f| layer_of(spec.name, f.name())).collect();
                layers.sort_unstable();
                all.extend(layers.into_iter().map(|layer| NumberColumn { name: spec.name, layer: Some(layer) }));
            } else if fields.iter().any(|field| field.name() == spec.name) {
                all.push(NumberColumn { name: spec.name, layer: None });
            }
        }
        all
    }

    /// All values of a column, in file order; null where undefined.
    ///
    /// # Errors
    /// If the file has no such column, holds NaN or an infinity in it or cannot be decoded.
    pub fn numbers(&self, column: NumberColumn) -> Result<Vec<Option<f32>>> {
        let name = column.layer.map_or_else(|| column.name.to_owned(), |layer| column_name(column.name, layer));
        let mut values = Vec::new();
        self.each_batch([(&name, Kind::F32)], |_, [array]| {
            let array = array.as_primitive::<Float32Type>();
            let first = values.len();
            // What stands in place of a null may be anything.
            let strange = |(row, value): (usize, Option<f32>)| Some((row, value.filter(|value| !value.is_finite())?));
            if array.values().iter().any(|value| !value.is_finite())
                && let Some((row, got)) = array.iter().enumerate().find_map(strange)
            {
                return Err(self.not_a_number(name.clone(), first + row, got));
            }
            values.extend(array.values().iter().map(|&value| Some(value)));
            // Nulls are few: the first token of a trace, most often.
            if let Some(nulls) = array.nulls() {
                for row in (!nulls.inner()).set_indices() {
                    values[first + row] = None;
                }
            }
            Ok(())
        })?;
        Ok(values)
    }

    /// Calls `each` with trace, position and token id of every row, in file order.
    ///
    /// # Errors
    /// If the file has no such columns, holds a null in them or cannot be decoded.
    pub fn tokens(&self, each: impl FnMut(&str, i32, i32)) -> Result<()> {
        self.keys(["pos", "token_id"], each)
    }

    /// Calls `each` with the trace and two integers of every row, in file order.
    ///
    /// # Errors
    /// As [`Self::tokens`].
    pub fn keys(&self, [first, second]: [&str; 2], mut each: impl FnMut(&str, i32, i32)) -> Result<()> {
        let columns = [("trace_id", Kind::Utf8), (first, Kind::I32), (second, Kind::I32)];
        self.each_batch(columns, |first_row, arrays| {
            for (array, (name, kind)) in arrays.iter().zip(columns) {
                if let Some(row) = (0..array.len()).find(|row| array.is_null(*row)) {
                    let (path, column, row) = (self.path.clone(), name.to_owned(), first_row + row);
                    return Err(Error::NullValue { path, column, row, expected: kind.name().to_owned() });
                }
            }
            let [trace_id, first, second] = &arrays;
            let (first, second) =
                (first.as_primitive::<Int32Type>().values(), second.as_primitive::<Int32Type>().values());
            for (row, (first, second)) in first.iter().zip(second).enumerate() {
                each(trace_id.as_string::<i32>().value(row), *first, *second);
            }
            Ok(())
        })
    }

    /// Decodes some columns batch by batch; `each` gets the first row and the arrays, which have the types asked for.
    fn each_batch<const N: usize>(
        &self,
        columns: [(&str, Kind); N],
        mut each: impl FnMut(usize, [ArrayRef; N]) -> Result<()>,
    ) -> Result<()> {
        let fields = self.metadata.schema().fields();
        let mut places = [0; N];
        for ((name, kind), place) in columns.iter().zip(&mut places) {
            let at = fields.iter().position(|field| field.name() == name && kind.accepts(field.data_type()));
            *place = at.ok_or_else(|| Error::MissingColumn {
                path: self.path.clone(),
                column: (*name).to_owned(),
                expected: kind.name().to_owned(),
            })?;
        }
        let order = places.map(|place| places.iter().filter(|other| **other < place).count());
        // A handle of its own: threads that share one share its place in the file.
        let file = crate::fs::open(&self.path)?;
        let rows_at_once = self.table.rows_at_once();
        let mut batches = Batches::new(&self.path, file, self.metadata.clone(), places, rows_at_once)?;
        while let Some((first_row, arrays)) =
            batches.next(|first_row, batch| Ok((first_row, order.map(|at| Arc::clone(batch.column(at))))))?
        {
            each(first_row, arrays)?;
        }
        Ok(())
    }

    /// The error of a value that is no finite number.
    fn not_a_number(&self, column: String, row: usize, got: f32) -> Error {
        let mut key = String::new();
        let found = self.each_batch([("trace_id", Kind::Utf8), ("pos", Kind::I32)], |first, [trace_id, pos]| {
            if let Some(at) = row.checked_sub(first).filter(|at| *at < pos.len()) {
                let (trace_id, pos) =
                    (trace_id.as_string::<i32>().value(at), pos.as_primitive::<Int32Type>().value(at));
                key = format!("trace_id={trace_id:?}, pos={pos}");
            }
            Ok(())
        });
        found.err().unwrap_or(Error::NotANumber { path: self.path.clone(), column, row, key, got })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PerLayer, SignalsAge, SignalsHs, SignalsToken, testing::TestResult, write_table};

    fn rows() -> Vec<SignalsHs> {
        let layers: Arc<[u16]> = Arc::new([0, 1, 12]);
        let value = |i: i32, layer: i32| (i % 7 != 0).then_some((10 * i + layer) as f32);
        let family = |i: i32| PerLayer::new(Arc::clone(&layers), [0, 1, 12].map(|layer| value(i, layer)).to_vec());
        let none = || PerLayer::new(Arc::new([]), Vec::new());
        let row = |i: i32| SignalsHs {
            trace_id: format!("t{}", i / 50),
            pos: i % 50,
            token_id: i,
            hs_l2: family(i),
            hs_cos: none(),
            hs_norm: family(2 * i),
        };
        (0..120).map(row).collect()
    }

    #[test]
    fn columns_are_those_of_the_rows() -> TestResult {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("signals_hs.parquet");
        let mut provenance = Provenance::new();
        provenance.set("run", 7);
        write_table(&path, &rows(), &provenance)?;
        let file = ColumnFile::open::<SignalsHs>(&path)?;
        assert_eq!(file.provenance().get("run"), Some(&7.into()));
        let named = |name| [0, 1, 12].map(|layer| NumberColumn { name, layer: Some(layer) });
        assert_eq!(file.number_columns(), [named("hs_l2"), named("hs_norm")].concat());
        for column in file.number_columns() {
            let of = |row: &SignalsHs| {
                if column.name == "hs_l2" { &row.hs_l2 } else { &row.hs_norm }.get(column.layer.unwrap())
            };
            assert_eq!(file.numbers(column)?, rows().iter().map(of).collect::<Vec<_>>());
        }
        let mut tokens = Vec::new();
        file.tokens(|trace_id, pos, token_id| tokens.push((trace_id.to_owned(), pos, token_id)))?;
        assert_eq!(tokens, rows().into_iter().map(|row| (row.trace_id, row.pos, row.token_id)).collect::<Vec<_>>());
        Ok(())
    }

    #[test]
    fn values_that_are_no_numbers_are_refused() -> TestResult {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("signals_hs.parquet");
        let mut rows = rows();
        rows[3].hs_norm = PerLayer::new(Arc::new([0, 1, 12]), vec![None, Some(f32::INFINITY), None]);
        write_table(&path, &rows, &Provenance::new())?;
        let file = ColumnFile::open::<SignalsHs>(&path)?;
        let error = file.numbers(NumberColumn { name: "hs_norm", layer: Some(1) }).expect_err("an infinity");
        let text =
            "signals_hs.parquet has inf in column hs_norm_l01, row 3 (trace_id=\"t0\", pos=3), expected: a number";
        assert!(error.to_string().contains(text), "{error}");
        assert!(file.numbers(NumberColumn { name: "hs_norm", layer: Some(0) }).is_ok(), "another column");

        // A table without a column of token ids.
        let path = folder.path().join("signals_age.parquet");
        let row = |pos, h2o_attn| SignalsAge { trace_id: "t0".to_owned(), age: 16, pos, h2o_attn };
        write_table(&path, &[row(0, Some(1.0)), row(1, Some(f32::INFINITY))], &Provenance::new())?;
        let file = ColumnFile::open::<SignalsAge>(&path)?;
        let error = file.numbers(NumberColumn { name: "h2o_attn", layer: None }).expect_err("an infinity");
        assert!(error.to_string().contains("has inf in column h2o_attn, row 1 (trace_id=\"t0\", pos=1)"), "{error}");
        Ok(())
    }

    #[test]
    fn what_is_not_there_is_an_error() -> TestResult {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("signals_hs.parquet");
        write_table(&path, &rows(), &Provenance::new())?;
        let file = ColumnFile::open::<SignalsHs>(&path)?;
        let error = file.numbers(NumberColumn { name: "hs_l2", layer: Some(2) }).expect_err("no such layer");
        assert!(error.to_string().contains("hs_l2_l02"), "{error}");
        assert!(ColumnFile::open::<SignalsToken>(&path).is_err(), "another table");
        Ok(())
    }
}
