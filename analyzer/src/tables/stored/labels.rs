//! Labels of samples, read part by part.

use std::collections::BTreeMap;
use std::path::Path;

use epikv_schemas::{LabelToken, LabelWindow, read_in_parts};

use crate::error::Result;
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
