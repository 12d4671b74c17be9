//! Labels of samples, read part by part.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Trace, read_in_parts, read_table};
use serde_json::Value;

use super::Stored;
use crate::error::{InputError, Result};
use crate::study::sample::Sample;
use crate::study::windows::Windows;

/// Gives samples their labels, reading the files part by part; files of windows are optional, as for recordings.
///
/// # Errors
/// If a label belongs to another trace, or a file cannot be read.
pub fn join_labels(samples: &mut [Sample], tokens: &Path, windows: Option<&Path>) -> Result<()> {
    let places: BTreeMap<String, usize> =
        samples.iter().enumerate().map(|(at, sample)| (sample.recording.trace_id.clone(), at)).collect();
    let mut failed = None;
    read_in_parts::<LabelToken>(tokens, |part| {
        for label in &part {
            if let Some(&at) = places.get(&label.trace_id) {
                let Sample { recording, mask, .. } = &mut samples[at];
                failed = failed.take().or_else(|| mask.add(recording, label).err());
            }
        }
    })?;
    if let Some(path) = windows {
        for sample in samples.iter_mut() {
            sample.windows = Some(Windows::default());
        }
        read_in_parts::<LabelWindow>(path, |part| {
            for label in &part {
                if let Some(&at) = places.get(&label.trace_id) {
                    let Sample { recording, windows, .. } = &mut samples[at];
                    let added = windows.as_mut().map_or(Ok(()), |windows| windows.add(recording, label));
                    failed = failed.take().or_else(|| added.err());
                }
            }
        })?;
    }
    failed.map_or(Ok(()), Err)
}

/// Traces that were recorded and have usable labels, with these.
#[derive(Debug)]
pub struct LabelledSamples {
    /// The traces.
    pub samples: Vec<Sample>,
    /// Traces with usable labels.
    pub n_usable: usize,
    /// Traces with usable labels that the files have no signals of.
    pub n_missing: usize,
}

impl Stored {
    /// The model that all files were recorded with; null where they do not say.
    ///
    /// # Errors
    /// If two files were recorded with different models.
    pub fn model(&self) -> Result<Value> {
        let mut models = self.files().map(|file| (file.path(), file.provenance().get("model").cloned()));
        let Some((first, model)) = models.next() else { return Ok(Value::Null) };
        if let Some((other, _)) = models.find(|(_, other)| *other != model) {
            return Err(InputError::OtherModel { first: first.to_owned(), other: other.to_owned() }.into());
        }
        Ok(model.unwrap_or(Value::Null))
    }

    /// The recorded ones of `traces` that have usable labels in a folder, with these.
    ///
    /// # Errors
    /// If a file cannot be read, or no trace has both.
    pub fn labelled(&self, folder: &Path, traces: &[Trace]) -> Result<LabelledSamples> {
        let (label_traces, _) = read_table::<LabelTrace>(&folder.join("label_traces.parquet"))?;
        let usable: BTreeSet<&str> = label_traces.iter().filter(|t| t.usable).map(|t| t.trace_id.as_str()).collect();
        let own: Vec<&Trace> = traces.iter().filter(|trace| usable.contains(trace.trace_id.as_str())).collect();
        let mut samples = self.samples(&own)?;
        if samples.is_empty() {
            return Err(InputError::NoneTogether { folder: folder.to_owned(), n_traces: traces.len() }.into());
        }
        let windows = folder.join("label_windows.parquet");
        let windows: Option<&Path> = windows.exists().then_some(&windows);
        let path = folder.join("label_tokens.parquet");
        join_labels(&mut samples, &path, windows)?;
        if samples.iter().all(|sample| sample.mask.tokens().is_empty()) {
            return Err(InputError::NoLabel { path }.into());
        }
        Ok(LabelledSamples { n_usable: own.len(), n_missing: own.len() - samples.len(), samples })
    }
}
