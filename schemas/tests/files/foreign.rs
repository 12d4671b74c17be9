//! Parquet files of others.

use std::{fs::File, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BinaryArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int64Array,
        ListArray, StringArray, StructArray,
    },
    datatypes::{DataType, Field, Int32Type},
    record_batch::RecordBatch,
};
use epikv_schemas::foreign;
use parquet::{
    arrow::ArrowWriter,
    basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel},
    file::properties::WriterProperties,
};
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

/// One file of the given columns.
fn file(columns: Vec<(&str, ArrayRef)>, compression: Compression) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("problems.parquet");
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    (folder, path)
}

#[test]
fn bytes_without_the_mark_of_text_are_text_or_an_error() {
    let text: ArrayRef = Arc::new(BinaryArray::from_vec(vec!["3 \u{20ac}?".as_bytes()]));
    let large: ArrayRef =
        Arc::new(Decimal128Array::from(vec![i128::from(u64::MAX) * 10]).with_precision_and_scale(38, 0).unwrap());
    let columns = vec![
        ("problem", text),
        ("small", Arc::new(Float32Array::from(vec![0.1])) as ArrayRef),
        ("whole", Arc::new(Float32Array::from(vec![25.0])) as ArrayRef),
        ("large", large),
    ];
    let (_folder, path) = file(columns, Compression::UNCOMPRESSED);
    let row = foreign::read_rows(&path).unwrap().remove(0);
    assert_eq!(row["problem"], json!("3 \u{20ac}?"));
    assert_eq!((&row["small"], &row["whole"]), (&json!(0.1), &json!(25.0)));
    assert_eq!(row["large"], json!("184467440737095516150"));

    let broken: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"ab\xff"]));
    let (_folder, path) = file(vec![("problem", broken)], Compression::UNCOMPRESSED);
    let error = foreign::read_rows(&path).unwrap_err();
    let said = format!("{error} {:?}", std::error::Error::source(&error));
    assert!(said.contains("column problem: expected UTF-8 text"), "{said}");

    let wide = FixedSizeBinaryArray::try_from_iter([[0_u8; 16]].iter()).unwrap();
    let (_folder, path) = file(vec![("answer", Arc::new(wide) as ArrayRef)], Compression::UNCOMPRESSED);
    let error = foreign::read_rows(&path).unwrap_err();
    let said = format!("{error} {:?}", std::error::Error::source(&error));
    assert!(said.contains("column answer: expected text or numbers, got values of 16 bytes"), "{said}");
}

#[test]
fn the_usual_codecs_are_read() {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
    ];
    for codec in codecs {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["2+2? ".repeat(100)]));
        let (_folder, path) = file(vec![("problem", text)], codec);
        assert_eq!(foreign::read_rows(&path).unwrap()[0]["problem"], json!("2+2? ".repeat(100)), "{codec}");
    }
}
