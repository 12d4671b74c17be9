//! Every error once: what provokes it, and that it names the file, the place, what was expected and what was there.
//! (`OtherLayers` is tested where families of columns are, those of the manifest where the manifest is.)

use std::{fs, path::Path, sync::Arc};

use arrow::array::{ArrayRef, BooleanArray, Int32Array, Int64Array, StringArray};
use epikv_schemas::{
    Error, LabelToken, LabelWindow, Provenance, Trace, fs as files, read_in_parts, read_table, write_table,
};
use epikv_words::Hint;

use crate::tools::{rewrite, token, window, with_column, write_tokens};

const TOKENS: Option<&str> = Some(r#""label_tokens/1.0""#);

/// The error of reading a token file after `spoil`.
fn spoilt(spoil: impl FnOnce(&Path)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    write_tokens(&path);
    spoil(&path);
    read_table::<LabelToken>(&path).unwrap_err()
}

/// Checks that the message holds all these pieces, the file's name among them.
fn says(error: &Error, pieces: &[&str]) {
    let text = error.to_string();
    assert!(text.contains("tokens.parquet"), "{text}");
    for piece in pieces {
        assert!(text.contains(piece), "{text:?} lacks {piece:?}");
    }
}

#[test]
fn a_missing_file() {
    let error = spoilt(|path| fs::remove_file(path).unwrap());
    says(&error, &["cannot open"]);
    assert!(matches!(error, Error::Io { .. }) && error.hint().is_some());
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_folder_in_place_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    fs::create_dir(&path).unwrap();
    let (read, written) = (read_table::<LabelToken>(&path), write_table(&path, &[token("a", 0)], &Provenance::new()));
    for error in [read.unwrap_err(), written.unwrap_err()] {
        says(&error, &["expected a file, got a folder"]);
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_missing_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/tokens.parquet");
    says(&write_table(&path, &[token("a", 0)], &Provenance::new()).unwrap_err(), &["cannot create"]);
}

#[test]
fn a_file_that_is_too_large_or_not_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    fs::write(&path, b"abc\xFF").unwrap();
    says(&files::read(&path, 3).unwrap_err(), &["at most 3 bytes, got: 4"]);
    says(&files::read_text(&path, 4).unwrap_err(), &["UTF-8", "offset 3"]);
    assert_eq!(files::read(&path, 4).unwrap(), b"abc\xFF");
}

#[test]
fn something_else_than_parquet() {
    let error = spoilt(|path| fs::write(path, "trace_id,pos\na,0\n").unwrap());
    says(&error, &["cannot read", "as Parquet"]);
    assert!(matches!(error, Error::Parquet { .. }) && error.hint().is_some());
}

#[test]
fn a_footer_that_declares_more_than_the_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    let rows: Vec<LabelToken> =
        (0..100_000).map(|pos| token(&format!("trace {}", pos * 7919 % 100_003), pos)).collect();
    write_table(&path, &rows, &Provenance::new()).unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[bytes.len() / 2..]).unwrap();
    let error = read_table::<LabelToken>(&path).unwrap_err();
    says(&error, &["row group 0, column", "expected: bytes within"]);
    assert!(matches!(error, Error::Damaged { .. }));
}

#[test]
fn a_failure_of_the_caller_is_not_one_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    write_tokens(&path);
    let failed = std::panic::catch_unwind(|| read_in_parts::<LabelToken>(&path, |_| panic!("of the caller")));
    assert_eq!(failed.unwrap_err().downcast_ref(), Some(&"of the caller"));
}

#[test]
fn a_file_without_a_schema() {
    let error = spoilt(|path| rewrite(path, None, |batch| batch));
    says(&error, &["epi.schema label_tokens/1.0"]);
    assert!(matches!(error, Error::NoSchema { .. }) && error.hint().is_some());
}

#[test]
fn a_file_of_another_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    write_tokens(&path);
    let error = read_table::<Trace>(&path).unwrap_err();
    says(&error, &["expected: traces, got: label_tokens/1.0"]);
    assert_eq!(error.hint().unwrap(), "give the path of a traces file");
    for odd in [r#""label_tokens""#, r#""label_tokens/one""#, r#""label_tokens/99999.0""#, "7", "null"] {
        let error = spoilt(|path| rewrite(path, Some(odd), |batch| batch));
        assert!(matches!(error, Error::OtherTable { .. }), "{odd}: {error}");
    }
}

#[test]
fn a_broken_provenance_value() {
    let error = spoilt(|path| rewrite(path, Some("{"), |batch| batch));
    says(&error, &["epi.schema", "expected: JSON"]);
    assert!(matches!(error, Error::BadProvenance { .. }));
}

#[test]
fn a_missing_column() {
    let error = spoilt(|path| rewrite(path, TOKENS, |batch| with_column(&batch, "pos", None)));
    says(&error, &["lacks column pos, expected: i32"]);
    assert!(matches!(error, Error::MissingColumn { .. }));
}

#[test]
fn a_column_of_another_type() {
    let wrong: [(&str, ArrayRef, &str); 3] = [
        ("pos", Arc::new(Int64Array::from(vec![0, 1, 2])), "expected: i32, got: i64"),
        ("important", Arc::new(Int32Array::from(vec![0, 1, 1])), "expected: bool, got: i32"),
        ("trace_id", Arc::new(BooleanArray::from(vec![true, true, false])), "expected: utf8, got: bool"),
    ];
    for (column, array, text) in wrong {
        let error = spoilt(|path| {
            rewrite(path, TOKENS, |batch| with_column(&batch, column, Some(array.clone())));
        });
        says(&error, &[&format!("column {column}"), text]);
        assert!(matches!(error, Error::WrongType { .. }) && error.hint().is_some());
    }
}

#[test]
fn a_null_where_none_may_be() {
    let holed: ArrayRef = Arc::new(Int32Array::from(vec![Some(0), None, Some(0)]));
    let error = spoilt(|path| {
        rewrite(path, TOKENS, |batch| with_column(&batch, "pos", Some(holed.clone())));
    });
    says(&error, &["null in column pos, row 1, expected: i32"]);
    assert!(matches!(error, Error::NullValue { .. }));
}

#[test]
fn a_word_that_the_column_does_not_know() {
    let words: ArrayRef = Arc::new(StringArray::from(vec!["reason", "reason", "thinking"]));
    let error = spoilt(|path| {
        rewrite(path, TOKENS, |batch| with_column(&batch, "region", Some(words.clone())));
    });
    let text = "column region, row 2, expected: one of prompt|reason|answer, got: \"thinking\"";
    says(&error, &[text]);

    let rows = [token("a", 0), LabelToken { region: "thinking".into(), ..token("b", 0) }];
    let error = refused(&rows);
    says(&error, &["column region, row 1"]);
    assert!(matches!(error, Error::UnknownWord { .. }));
}

#[test]
fn nan() {
    let rows = [window("a", 1), LabelWindow { min_margin: Some(f32::NAN), ..window("a", 0) }];
    let error = refused(&rows);
    says(&error, &["NaN in column min_margin, row 0 (trace_id=\"a\", window=0)"]);
    assert!(matches!(error, Error::NotANumber { .. }));
}

#[test]
fn two_rows_of_the_same_key() {
    let error = refused(&[token("a", 3), token("a", 4), token("a", 3)]);
    says(&error, &["one row for each trace_id, pos, got: two of trace_id=\"a\", pos=3"]);
    assert!(matches!(error, Error::DuplicateKey { .. }));
}

/// The error of writing rows over an older file, which must stay as it was, with no other file beside it.
fn refused<R: epikv_schemas::Record>(rows: &[R]) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    write_tokens(&path);
    let before = fs::read(&path).unwrap();
    let error = write_table(&path, rows, &Provenance::new()).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    error
}
