//! Input files, checked.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};
use epikv_model::Model;
use epikv_schemas::{Provenance, Trace, fs, read_table};
use epikv_tasks::made_by::{check_tokenizer, has_other_weights};
use serde_json::{Value, json};

/// The first traces of a file, and what made them.
pub(crate) fn traces(path: &Path, limit: Option<usize>) -> Result<(Vec<Trace>, Provenance)> {
    let (mut traces, made_by) = read_table::<Trace>(path)?;
    let mut seen = BTreeMap::new();
    for (row, trace) in traces.iter().enumerate() {
        // A trace that stands twice would give two rows of one key.
        if let Some(first) = seen.insert(&trace.trace_id, row) {
            bail!("{}: expected one row a trace, got {} in rows {first} and {row}", path.display(), trace.trace_id);
        }
    }
    traces.truncate(limit.unwrap_or(usize::MAX));
    Ok((traces, made_by))
}

/// Token ids mean something only to the tokenizer that made them; other weights are allowed but worth a word.
pub(crate) fn check_made_by(made_by: &Provenance, model: &Model, path: &Path) -> Result<()> {
    check_tokenizer(made_by, model, path)?;
    if has_other_weights(made_by, model) {
        tracing::warn!(traces = %path.display(), model = model.origin.id(), "the traces were made with other weights");
    }
    Ok(())
}

/// What an input file is, for provenance: its name and content.
pub(crate) fn fingerprint(path: &Path) -> Result<Value> {
    let fingerprint = fs::fingerprint(path)?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
    Ok(json!({ "file": name, "sha256": fingerprint.sha256 }))
}
