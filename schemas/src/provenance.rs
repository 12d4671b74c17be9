//! Provenance: which tool, model and run made a file, as JSON values in the key-value metadata of the Parquet footer.

use std::path::Path;

use parquet::file::metadata::KeyValue;
use serde_json::Value;

use crate::error::{Error, Result};

/// All keys of ours begin so; other tools' keys are left alone.
const PREFIX: &str = "epi.";

/// Ordered JSON values under keys such as `epi.tool`, `epi.model`, `epi.run`, `epi.inputs` and `epi.smoothing`.
///
/// Keys may be given with or without `epi.`. `epi.schema` is written by [`write_table`](crate::write_table) itself.
/// In a data file belongs only what is the same in every run of the same command: no time, host or thread count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    values: Vec<(String, Value)>,
}

impl Provenance {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value; a key that is already there keeps its place.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        let (key, value) = (full(key), value.into());
        match self.values.iter_mut().find(|(known, _)| *known == key) {
            Some((_, old)) => *old = value,
            None => self.values.push((key, value)),
        }
        self
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let key = full(key);
        self.values.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// All keys, with `epi.`, and values in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// These values and the table's name and version, which stand first.
    pub(crate) fn with_schema(&self, schema: &str) -> Self {
        let mut with_schema = Self::new();
        with_schema.set("schema", schema);
        with_schema.values.extend(self.values.iter().filter(|(key, _)| key != "epi.schema").cloned());
        with_schema
    }

    /// Each key with its value as JSON text.
    pub(crate) fn to_texts(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_string()))
    }

    /// Takes our entries out of a footer.
    pub(crate) fn from_metadata(path: &Path, entries: Option<&Vec<KeyValue>>) -> Result<Self> {
        let mut provenance = Self::new();
        for entry in entries.into_iter().flatten().filter(|entry| entry.key.starts_with(PREFIX)) {
            let text = entry.value.as_deref().unwrap_or("null");
            let value: Value = serde_json::from_str(text).map_err(|source| Error::BadProvenance {
                path: path.to_owned(),
                key: entry.key.clone(),
                source,
            })?;
            provenance.set(&entry.key, value);
        }
        Ok(provenance)
    }
}

fn full(key: &str) -> String {
    if key.starts_with(PREFIX) { key.to_owned() } else { format!("{PREFIX}{key}") }
}
