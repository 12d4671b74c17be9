//! Parquet files of others.

use std::{fs::File, sync::Arc};

use arrow::{
    array::{ArrayRef, Float64Array, Int64Array, ListArray, StringArray, StructArray},
    datatypes::{DataType, Field, Int32Type},
    record_batch::RecordBatch,
};
use epikv_schemas::foreign;
use parquet::arrow::ArrowWriter;
use serde_json::json;

#[test]
fn rows_become_objects() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("problems.parquet");
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("1 + 1?"), None]));
    let inner: ArrayRef = Arc::clone(&text);
    let columns: [(&str, ArrayRef); 5] = [
        ("problem", text),
        ("id", Arc::new(Int64Array::from(vec![7, -1]))),
        ("score", Arc::new(Float64Array::from(vec![0.25, f64::NAN]))),
        ("spans", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(3), None]), None]))),
        ("extra", Arc::new(StructArray::from(vec![(Arc::new(Field::new("a", DataType::Utf8, true)), inner)]))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    let rows: Vec<_> = foreign::read_rows(&path).unwrap().into_iter().map(serde_json::Value::Object).collect();
    let first = json!({ "problem": "1 + 1?", "id": 7, "score": 0.25, "spans": [3, null], "extra": { "a": "1 + 1?" } });
    let second = json!({ "problem": null, "id": -1, "score": null, "spans": null, "extra": { "a": null } });
    assert_eq!(rows, [first, second]);

    std::fs::write(&path, "{\"problem\": 1}").unwrap();
    assert!(foreign::read_rows(&path).unwrap_err().to_string().contains("problems.parquet"));
}
