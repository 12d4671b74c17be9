//! The files of a folder of labels.

use std::collections::BTreeMap;
use std::path::Path;

use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Provenance, read_table};

use crate::error::Result;

/// One row a window.
pub const WINDOWS: &str = "label_windows.parquet";
/// One row a token.
pub const TOKENS: &str = "label_tokens.parquet";
/// One row a trace.
pub const TRACES: &str = "label_traces.parquet";
/// One row a regeneration.
pub const TIMINGS: &str = "label_timings.parquet";
/// The parts of flipping windows, where they were asked for.
pub const REFINED: &str = "label_refined.parquet";
/// The pairs of windows, where they were asked for.
pub const PAIRS: &str = "label_pairs.parquet";

/// The windows of a folder, and what made them.
pub fn windows(folder: &Path) -> Result<(Vec<LabelWindow>, Provenance)> {
    Ok(read_table(&folder.join(WINDOWS))?)
}

/// The token labels of a folder.
pub fn tokens(folder: &Path) -> Result<Vec<LabelToken>> {
    Ok(read_table(&folder.join(TOKENS))?.0)
}

/// The labelled traces of a folder.
pub fn traces(folder: &Path) -> Result<Vec<LabelTrace>> {
    Ok(read_table(&folder.join(TRACES))?.0)
}

/// Rows by their trace, in their order.
pub(crate) fn by_trace<R>(rows: Vec<R>, id: impl Fn(&R) -> &String) -> BTreeMap<String, Vec<R>> {
    let mut all: BTreeMap<String, Vec<R>> = BTreeMap::new();
    for row in rows {
        all.entry(id(&row).clone()).or_default().push(row);
    }
    all
}
