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

/// Input files as a manifest lists them: their paths as they were typed, and their content.
pub(crate) fn listed<P: AsRef<Path>>(paths: &[P]) -> Result<Value> {
    let one = |path: &P| {
        let path = path.as_ref();
        Ok(json!({ "path": path.to_string_lossy(), "sha256": fs::fingerprint(path)?.sha256 }))
    };
    Ok(Value::Array(paths.iter().map(one).collect::<Result<_>>()?))
}

/// Whether the files of [`listed`] have the content that they had.
pub(crate) fn are_unchanged(inputs: &Value) -> bool {
    let is_unchanged = |input: &Value| {
        let path = input["path"].as_str().map(Path::new);
        let now = path.and_then(|path| fs::fingerprint(path).ok());
        now.is_some_and(|now| input["sha256"] == now.sha256)
    };
    inputs.as_array().is_some_and(|inputs| inputs.iter().all(is_unchanged))
}

/// Whether a file, or each file of a folder, is older than another file.
pub(crate) fn is_older(path: &Path, than: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let files = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    files.chain([path.to_owned()]).all(|file| matches!((time(&file), time(than)), (Some(a), Some(b)) if a < b))
}
