//! Parquet files of other tools, such as problem sets: any columns, returned as JSON objects.

use std::path::Path;

use arrow::{
    array::{Array, AsArray},
    datatypes::{
        DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
        UInt32Type, UInt64Type,
    },
    error::ArrowError,
    util::display::array_value_to_string,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use crate::{
    error::Result,
    open::{self, read_failed},
};

/// Rows decoded together; small, since a row of a foreign file may be large.
const BATCH_ROWS: usize = 1024;

/// Reads all rows of a Parquet file, each as an object with a member for each column, in column order.
///
/// Lists become arrays, structs objects, null and NaN null; dates, decimals and the like become text. Bytes without the
/// mark of text are text where they are UTF-8; other bytes are an error that names the column.
pub fn read_rows(path: &Path) -> Result<Vec<Map<String, Value>>> {
    open::guarded(path, || {
        let (file, metadata) = open::open(path)?;
        let declared = metadata.metadata().file_metadata().num_rows();
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|source| read_failed(path, source))?;
        let mut rows = Vec::new();
        for batch in reader {
            let batch = batch.map_err(|error| read_failed(path, error.into()))?;
            let schema = batch.schema();
            for row in 0..batch.num_rows() {
                let columns = schema.fields().iter().zip(batch.columns());
                let member = columns.map(|(field, array)| {
                    Ok((field.name().clone(), value(array, row).map_err(in_column(field.name()))?))
                });
                let object: std::result::Result<_, ArrowError> = member.collect();
                rows.push(object.map_err(|error| read_failed(path, error.into()))?);
            }
        }
        open::check_count(path, declared, rows.len())?;
        Ok(rows)
    })
}

fn in_column(name: &str) -> impl Fn(ArrowError) -> ArrowError {
    move |error| match error {
        ArrowError::CastError(what) => ArrowError::CastError(format!("column {name}: {what}")),
        other => other,
    }
}

/// Bytes as text.
fn text(bytes: &[u8]) -> std::result::Result<Value, ArrowError> {
    let text = std::str::from_utf8(bytes);
    text.map(Value::from).map_err(|error| {
        ArrowError::CastError(format!("expected UTF-8 text, got bytes that end to be text at {}", error.valid_up_to()))
    })
}

/// One value of a column as JSON.
fn value(array: &dyn Array, row: usize) -> std::result::Result<Value, ArrowError> {
    macro_rules! number {
        ($arrow:ty) => {
            Value::from(array.as_primitive::<$arrow>().value(row))
        };
    }
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    let value = match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        // The decimal that was written, not the double next to it: 0.1 is 0.1.
        DataType::Float32 => {
            let shown = array.as_primitive::<Float32Type>().value(row).to_string();
            shown.parse::<f64>().map_or(Value::Null, Value::from)
        }
        DataType::Float64 => number!(Float64Type),
        DataType::Binary => text(array.as_binary::<i32>().value(row))?,
        DataType::LargeBinary => text(array.as_binary::<i64>().value(row))?,
        DataType::FixedSizeBinary(size) => {
            return Err(ArrowError::CastError(format!(
                "expected text or numbers, got values of {size} bytes without a type, as 128-bit integers are written by \
                 some programs: write them as text"
            )));
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|at| value(&items, at)).collect::<std::result::Result<Vec<_>, _>>()?.into()
        }
        DataType::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns());
            let members = members.map(|(field, column)| Ok((field.name().clone(), value(column, row)?)));
            Value::Object(members.collect::<std::result::Result<_, ArrowError>>()?)
        }
        _ => array_value_to_string(array, row)?.into(),
    };
    Ok(value)
}
