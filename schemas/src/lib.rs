//! The record files between the stages: their columns, how they are written and read, and their provenance.
//!
//! One file under `records/` defines one table with the `record!` macro: the Rust struct, the Arrow schema, the Parquet
//! encodings, the documentation and the tests that every record must pass all derive from that one list of columns.
//!
//! - [`write_table`] sorts, checks and writes rows; the file appears whole or not at all, and equal rows give equal bytes.
//! - [`read_table`] checks the schema version and every column before it hands out rows; [`read_in_parts`] hands them out part
//!   by part, and a [`ColumnFile`] is read column by column, where all of a file does not fit into memory.
//! - [`Trace::checked`] gives a trace's tokens and parts, checked against one another.
//! - [`Provenance`] travels inside each file; [`Manifest`] lists the finished files of a run folder with their sha256.
//! - [`commit`] puts the files of a run in place together, and [`Lock`] keeps two runs from writing the same files.
//! - [`Journal`] keeps what a run has finished, so that a killed one goes on.
//! - [`registry`] lists all tables. [`describe`] writes their documentation for `epikv schema` and `docs/files.md`.
//!
//! This crate has no code for models, labels or statistics. Data files hold no times, only what determines their
//! values.
//!
//! ```
//! use epikv_schemas::{LabelToken, Provenance, read_table, write_table};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("label_tokens.parquet");
//! let rows = [LabelToken {
//!     trace_id: "gsm8k-17".into(),
//!     pos: 40,
//!     token_id: 1234,
//!     region: "reason".into(),
//!     tested: true,
//!     important: None, // every regeneration over this token was undecided
//!     n_cover: 0,
//!     n_flip: 0,
//! }];
//! let mut provenance = Provenance::new();
//! provenance.set("run", serde_json::json!({ "seed": 0 }));
//! let part = write_table(&path, &rows, &provenance)?;
//! assert_eq!(part.rows, 1);
//!
//! let (read, _) = read_table::<LabelToken>(&path)?;
//! assert_eq!(read, rows);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod cell;
mod checked_trace;
mod column_file;
mod columns;
pub mod commit;
pub mod describe;
mod encoding;
mod error;
pub mod foreign;
pub mod fs;
mod journal;
mod json_lines;
mod layer_column;
mod layers;
mod lock;
mod manifest;
mod open;
mod provenance;
mod read;
mod record;
mod records;
mod role;
mod spec;
#[cfg(test)]
mod testing;
mod write;

pub use cell::Cell;
pub use checked_trace::{CheckedTrace, TraceError};
pub use column_file::{ColumnFile, NumberColumn};
pub use error::{Error, Result};
pub use journal::Journal;
pub use layers::PerLayer;
pub use lock::Lock;
pub use manifest::{Entry, Manifest, PartInfo};
pub use provenance::Provenance;
pub use read::{read_in_parts, read_table, read_unlisted};
pub use record::Record;
pub use records::*;
pub use role::Role;
pub use spec::{ColumnSpec, Kind, TableSpec, Version};
pub use write::write_table;
