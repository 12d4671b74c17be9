//! The manifest after good runs, crashes and edits.

use std::{fs, path::Path};

use epikv_schemas::{Entry, Error, Manifest, PartInfo, Provenance, write_table};
use epikv_words::Hint;
use serde_json::{Map, json};

use crate::tools::token;

fn write_part(folder: &Path, file: &str, pos: i32) -> PartInfo {
    write_table(&folder.join(file), &[token("a", pos)], &Provenance::new()).unwrap()
}

fn notes() -> Map<String, serde_json::Value> {
    json!({ "started": "2026-01-01T00:00:00Z", "threads": 2 }).as_object().unwrap().clone()
}

/// A folder with two parts and their manifest.
fn two_parts() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut manifest = Manifest::open(folder.path()).unwrap();
    for (file, pos) in [("one.parquet", 1), ("two.parquet", 2)] {
        manifest.append(write_part(folder.path(), file, pos), notes()).unwrap();
    }
    folder
}

/// The last entry of a file.
fn latest<'m>(manifest: &'m Manifest, file: &str) -> Option<&'m Entry> {
    manifest.entries().iter().rev().find(|entry| entry.part.file == file)
}

#[test]
fn entries_come_back_with_their_notes() {
    let folder = two_parts();
    let manifest = Manifest::open(folder.path()).unwrap();
    assert_eq!(manifest.entries().len(), 2);
    let entry = latest(&manifest, "two.parquet").unwrap();
    assert_eq!((entry.part.rows, &entry.info), (1, &notes()));
    assert!(latest(&manifest, "three.parquet").is_none());
    manifest.verify().unwrap();
}

#[test]
fn the_last_entry_of_a_file_counts() {
    let folder = two_parts();
    let mut manifest = Manifest::open(folder.path()).unwrap();
    let again = write_part(folder.path(), "one.parquet", 9);
    assert!(matches!(manifest.verify().unwrap_err(), Error::PartChanged { .. }));
    manifest.append(again.clone(), Map::new()).unwrap();
    manifest.verify().unwrap();
    assert_eq!(latest(&Manifest::open(folder.path()).unwrap(), "one.parquet").unwrap().part, again);
}

#[test]
fn a_half_written_last_line_is_dropped_wherever_it_was_cut() {
    let folder = two_parts();
    let path = folder.path().join("manifest.jsonl");
    let whole = fs::read(&path).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in first..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let mut manifest = Manifest::open(folder.path()).unwrap();
        // Only the newline is missing after the last cut, and then the entry is whole.
        let expected = if cut == whole.len() - 1 { 2 } else { 1 };
        assert_eq!(manifest.entries().len(), expected, "cut at {cut}");
        assert_eq!(fs::read(&path).unwrap().len(), cut, "reading changes nothing");
        manifest.append(write_part(folder.path(), "three.parquet", 3), notes()).unwrap();
        let files: Vec<_> = manifest.entries().iter().map(|entry| entry.part.file.clone()).collect();
        let read: Vec<_> =
            Manifest::open(folder.path()).unwrap().entries().iter().map(|entry| entry.part.file.clone()).collect();
        assert_eq!(read, files, "cut at {cut}");
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), expected + 1);
    }
}

#[test]
fn zeros_that_a_crash_left_are_dropped() {
    let folder = two_parts();
    let path = folder.path().join("manifest.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 100]);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(Manifest::open(folder.path()).unwrap().entries().len(), 2);
}

#[test]
fn a_broken_line_in_the_middle_is_an_error() {
    let folder = two_parts();
    let path = folder.path().join("manifest.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"rows\":1", "\"rows\":-1", 1)).unwrap();
    let error = Manifest::open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::BadManifestLine { line: 1, .. }) && error.hint().is_some(), "{error:?}");
    assert!(error.to_string().contains("manifest.jsonl has a broken line 1"), "{error}");
}

#[test]
fn a_name_outside_the_folder_is_an_error() {
    for name in ["../one.parquet", "/etc/passwd", "sub/one.parquet", "..", ""] {
        let folder = two_parts();
        let path = folder.path().join("manifest.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("one.parquet", name, 1)).unwrap();
        let error = Manifest::open(folder.path()).unwrap_err();
        assert!(matches!(error, Error::OutsideFolder { .. }), "{name}: {error:?}");
    }
}

#[test]
fn a_missing_or_changed_part_is_an_error() {
    let folder = two_parts();
    let manifest = Manifest::open(folder.path()).unwrap();
    let path = folder.path().join("two.parquet");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = manifest.verify().unwrap_err();
    assert!(matches!(error, Error::PartChanged { .. }) && error.hint().is_some(), "{error:?}");
    assert!(error.to_string().contains("two.parquet"), "{error}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(manifest.verify().unwrap_err(), Error::Io { .. }));
}
