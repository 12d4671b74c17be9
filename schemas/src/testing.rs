//! Tests that every record must pass. The `record!` macro adds a test that runs them.
//!
//! The rows are random and made from the column definitions, so a new record needs no test data.

use std::{fs::File, path::Path};

use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    basic::{Compression, Encoding, PageType},
    file::{
        metadata::ColumnChunkMetaData,
        reader::{FileReader, SerializedFileReader},
    },
};
use proptest::{
    prelude::any,
    test_runner::{Config, TestCaseError, TestRunner},
};

use crate::{Kind, Provenance, Record, Role, read_table, registry, spec::TableSpec, write_table};

/// `SplitMix64`: small, seeded, the same everywhere.
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number that every numeric kind holds, with a fraction for the floats.
    pub(crate) fn number(&mut self) -> f64 {
        (self.below(65_535) as f64 - 32_767.0) + self.below(1000) as f64 / 1000.0
    }

    pub(crate) fn text(&mut self, role: Role) -> String {
        const LETTERS: [char; 10] = ['a', '7', ' ', '"', '|', '\n', '\0', 'é', '思', '\u{1F600}'];
        match role {
            Role::Word(words) => words[self.below(words.len() as u64) as usize].to_owned(),
            Role::Key => format!("k{}", self.below(50)),
            _ => (0..self.below(9)).map(|_| LETTERS[self.below(10) as usize]).collect(),
        }
    }
}

/// Rows in file order, no two of the same key.
pub(crate) fn sample_rows<R: Record>(seed: u64, count: usize) -> Vec<R> {
    let mut random = Random(seed);
    let mut rows: Vec<R> = (0..count).map(|_| R::sample(&mut random)).collect();
    rows.sort_by(R::compare);
    rows.dedup_by(|a, b| a.compare(b).is_eq());
    rows
}

fn sample_provenance() -> Provenance {
    let mut provenance = Provenance::new();
    provenance.set("tool", "epikv 0.1.0").set("epi.run", serde_json::json!({ "seed": 7, "args": ["label"] }));
    provenance
}

pub(crate) type TestResult = Result<(), Box<dyn std::error::Error>>;

/// The contract of every record.
pub(crate) fn contract<R: Record + Clone + PartialEq + std::fmt::Debug>() -> TestResult {
    columns_are_described(R::TABLE);
    rows_come_back::<R>()?;
    columns_are_stored_as_meant::<R>()?;
    damage_is_an_error::<R>()
}

fn columns_are_described(table: &TableSpec) {
    assert!(is_snake_case(table.name) && table.doc.trim().ends_with('.'), "{}", table.name);
    for column in table.columns {
        let place = format!("{}.{}", table.name, column.name);
        assert!(is_snake_case(column.name) && column.doc.trim().ends_with('.'), "{place}");
        assert_eq!(table.columns.iter().filter(|other| other.name == column.name).count(), 1, "{place} is there twice");
        let fits = match column.role {
            Role::Key | Role::Word(_) | Role::Text => column.kind == Kind::Utf8,
            Role::Flag => column.kind == Kind::Bool,
            Role::Position => matches!(column.kind, Kind::I32 | Kind::ListI32),
            Role::Number(unit) => !unit.is_empty() && !matches!(column.kind, Kind::Utf8 | Kind::Bool),
        };
        assert!(fits, "{place}: {:?} is no role of a {}", column.role, column.kind.name());
    }
    for key in table.sort_key {
        assert!(table.column(key).is_some(), "{}: the key column {key} does not exist", table.name);
    }
    let names: Vec<_> = registry().iter().map(|table| table.name).collect();
    let is_test_table = table.name.starts_with("test_");
    assert!(is_test_table || names.contains(&table.name), "{} has no row in the registry", table.name);
}

fn is_snake_case(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Rows written in any order come back sorted and equal, and the bytes do not depend on the order.
fn rows_come_back<R: Record + Clone + PartialEq + std::fmt::Debug>() -> TestResult {
    let folder = tempfile::tempdir()?;
    let config = Config {
        cases: 24, // each case writes two files and waits for the disk
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config).run(&(any::<u64>(), 0_usize..60), |(seed, count)| {
        round_trip(folder.path(), &sample_rows::<R>(seed, count))
            .map_err(|error| TestCaseError::fail(error.to_string()))
    })?;
    Ok(())
}

fn round_trip<R: Record + Clone + PartialEq + std::fmt::Debug>(folder: &Path, rows: &[R]) -> TestResult {
    let (one, two) = (folder.join("one.parquet"), folder.join("two.parquet"));
    let reversed: Vec<R> = rows.iter().rev().cloned().collect();
    let part = write_table(&one, rows, &sample_provenance())?;
    assert_eq!(part.sha256, write_table(&two, &reversed, &sample_provenance())?.sha256);
    assert_eq!((part.rows, part.bytes), (rows.len() as u64, std::fs::metadata(&one)?.len()));
    assert_eq!(part.sha256, crate::fs::fingerprint(&one)?.sha256);
    let (read, provenance) = read_table::<R>(&two)?;
    assert_eq!(read, rows);
    assert_eq!(provenance.get("epi.run"), sample_provenance().get("run"));
    assert_eq!(provenance.get("schema"), Some(&R::TABLE.id().into()));
    // pyarrow keeps the keys of the Arrow schema when it writes a file again.
    let arrow = ArrowReaderMetadata::load(&File::open(&two)?, ArrowReaderOptions::default())?;
    let kept: Vec<&str> = arrow.schema().metadata().iter().map(|(key, _)| key.as_str()).collect();
    assert!(provenance.iter().all(|(key, _)| kept.contains(&key)), "{kept:?}");
    Ok(())
}

fn columns_are_stored_as_meant<R: Record>() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.parquet");
    write_table(&path, &sample_rows::<R>(1, 60), &sample_provenance())?;
    let file = SerializedFileReader::new(File::open(&path)?)?;
    assert_eq!(file.metadata().file_metadata().created_by(), Some("epikv version 1.0.0"));
    let group = file.metadata().row_group(0);
    assert_eq!(group.sorting_columns().map(Vec::len), Some(R::TABLE.sort_key.len()));
    for (at, chunk) in group.columns().iter().enumerate() {
        column_is_stored_as_meant(R::TABLE, chunk);
        for page in file.get_row_group(0)?.get_column_page_reader(at)? {
            assert_ne!(page?.page_type(), PageType::DATA_PAGE_V2);
        }
    }
    Ok(())
}

fn column_is_stored_as_meant(table: &TableSpec, chunk: &ColumnChunkMetaData) {
    let name = &chunk.column_path().parts()[0];
    let Some(spec) = table.columns.iter().find(|spec| spec.is_named(name)) else { panic!("{name} is no column") };
    let encodings: Vec<Encoding> = chunk.encodings().collect();
    let expected = match (spec.kind, spec.role) {
        (Kind::F32 | Kind::F64, _) => Encoding::BYTE_STREAM_SPLIT,
        (Kind::ListI32, _) | (_, Role::Position) => Encoding::DELTA_BINARY_PACKED,
        (Kind::Bool, _) => Encoding::RLE,
        (_, Role::Text) => Encoding::PLAIN,
        _ => Encoding::RLE_DICTIONARY,
    };
    assert!(encodings.contains(&expected), "{name}: {encodings:?} without {expected}");
    assert_eq!(chunk.dictionary_page_offset().is_some(), expected == Encoding::RLE_DICTIONARY, "{name}");
    assert!(matches!(chunk.compression(), Compression::ZSTD(_)), "{name}: {:?}", chunk.compression());
    let silent = spec.role == Role::Text || spec.kind == Kind::ListI32;
    assert_eq!(chunk.statistics().is_none(), silent, "{name}: statistics");
    assert_eq!(chunk.column_index_offset().is_none(), silent, "{name}: column index");
    assert!(chunk.offset_index_offset().is_some(), "{name}: offset index");
}

/// A cut file is an error; a file with a wrong byte is an error or, where nothing notices, at least not a panic.
fn damage_is_an_error<R: Record>() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.parquet");
    write_table(&path, &sample_rows::<R>(2, 40), &sample_provenance())?;
    let sound = std::fs::read(&path)?;
    for length in (0..sound.len()).step_by(37).chain(sound.len() - 12..sound.len()) {
        std::fs::write(&path, &sound[..length])?;
        let Err(error) = read_table::<R>(&path) else { panic!("{length} bytes of {} are enough", sound.len()) };
        assert!(error.to_string().contains("table.parquet"), "{error}");
    }
    let mut random = Random(3);
    for at in (0..sound.len()).step_by(sound.len() / 400 + 1) {
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << random.below(8);
        std::fs::write(&path, &damaged)?;
        if let Err(error) = read_table::<R>(&path) {
            assert!(error.to_string().contains("table.parquet"), "{error}");
        }
    }
    Ok(())
}
