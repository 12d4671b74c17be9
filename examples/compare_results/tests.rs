//! Differences planted in a copy of small results: each must be found, and what may differ must not be.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, Float32Array, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;

use crate::files::{Report, compare};

/// A file of results: names and values of columns.
type Columns = Vec<(&'static str, ArrayRef)>;

const FILE: &str = "evict/eviction_runs.parquet";

/// Three rows, the last of which draws for each head.
fn columns() -> Columns {
    let policies = ["h2o", "random", "random;scope=per-head"];
    vec![
        ("problem_id", Arc::new(StringArray::from(vec!["p"; 3]))),
        ("policy", Arc::new(StringArray::from(policies.to_vec()))),
        ("budget", Arc::new(StringArray::from(vec![Some("128"), None, Some("128")]))),
        ("sample", Arc::new(Int32Array::from(vec![0, 0, 0]))),
        ("min_margin", Arc::new(Float32Array::from(vec![Some(0.1), None, Some(0.3)]))),
    ]
}

fn write(folder: &Path, file: &str, columns: &Columns) -> Result<()> {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, column)| (*name, column.clone(), true)))?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// The comparison of the results above with a changed copy.
fn changed(change: impl FnOnce(&mut Columns)) -> Result<Report> {
    let (old, new) = (tempfile::tempdir()?, tempfile::tempdir()?);
    write(old.path(), FILE, &columns())?;
    let mut other = columns();
    change(&mut other);
    write(new.path(), FILE, &other)?;
    compare(old.path(), new.path())
}

fn margins(values: [Option<f32>; 3]) -> ArrayRef {
    Arc::new(Float32Array::from(values.to_vec()))
}

#[test]
fn equal_results_are_equal() -> Result<()> {
    let report = changed(|_| ())?;
    assert!(report.is_equal(), "{:?}", report.differences());
    let mut printed = Vec::new();
    report.print(&mut printed)?;
    let printed = String::from_utf8(printed)?;
    assert!(printed.contains("eviction_runs.parquet: 2 rows, 5 columns, 1 set aside"), "{printed}");
    assert!(printed.ends_with("equal: 10 values in 1 files\n"), "{printed}");
    Ok(())
}

#[test]
fn a_planted_difference_is_named_with_file_row_column_and_values() -> Result<()> {
    let next = f32::from_bits(0.1_f32.to_bits() + 1);
    let wrong = [
        ([Some(next), None, Some(0.3)], "row 0, column min_margin: old 0.1, new 0.10000001"),
        ([None, None, Some(0.3)], "row 0, column min_margin: old 0.1, new null"),
        ([Some(0.1), Some(0.0), Some(0.3)], "row 1, column min_margin: old null, new 0.0"),
    ];
    for (values, expected) in wrong {
        let found = changed(|columns| columns[4].1 = margins(values))?;
        assert!(!found.is_equal());
        assert_eq!(found.differences(), [format!("{FILE}: {expected}")]);
    }
    Ok(())
}

#[test]
fn a_missing_column_row_or_file_and_another_type_are_differences() -> Result<()> {
    let found = changed(|columns| drop(columns.remove(4)))?;
    assert_eq!(found.differences(), [format!("{FILE}: column min_margin: not in the new file")]);
    let found = changed(|columns| columns[4].1 = Arc::new(Int32Array::from(vec![1, 2, 3])))?;
    assert_eq!(found.differences(), [format!("{FILE}: column min_margin: old type Float32, new type Int32")]);
    let found = changed(|columns| columns.iter_mut().for_each(|(_, column)| *column = column.slice(0, 1)))?;
    assert_eq!(found.differences(), [format!("{FILE}: row 1 (p, random, null, 0): not in the new file")]);
    let (old, new) = (tempfile::tempdir()?, tempfile::tempdir()?);
    write(old.path(), FILE, &columns())?;
    assert_eq!(compare(old.path(), new.path())?.differences(), [format!("{FILE}: not in the new results")]);
    Ok(())
}

#[test]
fn additions_are_listed_and_rows_that_draw_anew_are_set_aside() -> Result<()> {
    let report = changed(|columns| {
        columns[4].1 = margins([Some(0.1), None, Some(0.9)]);
        columns.push(("read_tokens", margins([None, None, Some(1.0)])));
    })?;
    assert!(report.is_equal(), "{:?}", report.differences());
    assert_eq!(report.additions(), [format!("{FILE}: new column read_tokens")]);
    Ok(())
}
