//! Row groups hold whole traces.

use std::fs::File;

use epikv_schemas::{LabelToken, Provenance, read_table, write_table};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::tools::token;

/// Rows of each row group of a file with traces of these lengths.
fn groups(lengths: &[i32]) -> Vec<i64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.parquet");
    let trace = |(at, length): (usize, &i32)| (0..*length).map(move |pos| token(&format!("t{at:03}"), pos)).collect();
    let rows: Vec<LabelToken> = lengths.iter().enumerate().flat_map::<Vec<_>, _>(trace).collect();
    write_table(&path, &rows, &Provenance::new()).unwrap();
    assert_eq!(read_table::<LabelToken>(&path).unwrap().0, rows);
    let file = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    file.metadata().row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).collect()
}

#[test]
fn a_group_ends_between_traces() {
    assert_eq!(groups(&[]), [0_i64; 0]);
    assert_eq!(groups(&[5, 7]), [12]);
    assert_eq!(groups(&[50_000; 5]), [100_000, 100_000, 50_000]);
    assert_eq!(groups(&[131_072, 1]), [131_072, 1]);
}

#[test]
fn a_trace_longer_than_a_group_stays_whole() {
    assert_eq!(groups(&[10, 140_000, 10]), [10, 140_000, 10]);
}
