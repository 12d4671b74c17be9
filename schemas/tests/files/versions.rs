//! What a reader makes of files of other versions.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array};
use epikv_schemas::{Error, LabelToken, Version, read_table};
use epikv_words::Hint;

use crate::tools::{rewrite, token, with_column, write_tokens};

#[test]
fn a_nullable_column_that_an_older_file_lacks_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    write_tokens(&path);
    rewrite(&path, Some(r#""label_tokens/1.0""#), |batch| with_column(&batch, "important", None));
    let (rows, _) = read_table::<LabelToken>(&path).unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.important.is_none()));
    assert_eq!(rows[0].pos, 0);
}

#[test]
fn a_column_or_word_that_a_newer_file_added_is_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    write_tokens(&path);
    rewrite(&path, Some(r#""label_tokens/1.7""#), |batch| {
        let regions = arrow::array::StringArray::from(vec!["epilogue"; batch.num_rows()]);
        let batch = with_column(&batch, "region", Some(Arc::new(regions)));
        let new: ArrayRef = Arc::new(Int32Array::from(vec![7; batch.num_rows()]));
        with_column(&batch, "brand_new", Some(new))
    });
    let (rows, provenance) = read_table::<LabelToken>(&path).unwrap();
    assert_eq!(rows[1].token_id, token("a", 1).token_id);
    assert_eq!(rows[1].region, "epilogue");
    assert_eq!(provenance.get("schema").unwrap(), "label_tokens/1.7");
}

#[test]
fn another_major_is_refused_with_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    write_tokens(&path);
    rewrite(&path, Some(r#""label_tokens/2.3""#), |batch| batch);
    let error = read_table::<LabelToken>(&path).unwrap_err();
    assert!(matches!(&error, Error::OtherMajor { got: Version { major: 2, minor: 3 }, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("tokens.parquet") && text.ends_with("expected: 1.0, got: 2.3"), "{text}");
    assert!(error.hint().unwrap().contains("newer epikv"));

    rewrite(&path, Some(r#""label_tokens/0.9""#), |batch| batch);
    let older = read_table::<LabelToken>(&path).unwrap_err();
    assert!(older.hint().unwrap().contains("make the file again"));
}

#[test]
fn a_file_that_another_tool_rewrote_is_still_read() {
    // Tools drop page settings, make every column nullable and use large text; the values are what counts.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    write_tokens(&path);
    rewrite(&path, Some(r#""label_tokens/1.0""#), |batch| {
        let large = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::LargeUtf8).unwrap();
        with_column(&batch, "trace_id", Some(large))
    });
    assert_eq!(read_table::<LabelToken>(&path).unwrap().0, [token("a", 0), token("a", 1), token("b", 0)]);
}
