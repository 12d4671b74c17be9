//! The labels of a folder, by trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use epikv_schemas::{LabelToken, LabelTrace, LabelWindow, Provenance, Trace, fs, read_table};

use crate::error::{InputError, Result};

/// Labels as `epikv label` writes them.
#[derive(Debug)]
pub struct LabelSet {
    /// The file of token labels.
    pub path: PathBuf,
    /// What made them.
    pub made_by: Provenance,
    tokens: BTreeMap<String, Vec<LabelToken>>,
    /// `None` where the folder has no table of windows.
    windows: Option<BTreeMap<String, Vec<LabelWindow>>>,
    usable: BTreeMap<String, bool>,
}

impl LabelSet {
    /// Reads `label_tokens.parquet`, `label_traces.parquet` and, where it is there, `label_windows.parquet` of a folder.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("label_tokens.parquet");
        let (tokens, made_by) = read_table::<LabelToken>(&path)?;
        let (traces, _) = read_table::<LabelTrace>(&folder.join("label_traces.parquet"))?;
        let windows_path = folder.join("label_windows.parquet");
        let windows = windows_path.exists().then(|| read_table::<LabelWindow>(&windows_path)).transpose()?;
        let windows = windows.map(|(windows, _)| {
            let mut by_trace: BTreeMap<String, Vec<LabelWindow>> = BTreeMap::new();
            for window in windows {
                by_trace.entry(window.trace_id.clone()).or_default().push(window);
            }
            by_trace
        });
        let mut set = Self { path, made_by, tokens: BTreeMap::new(), windows, usable: BTreeMap::new() };
        for token in tokens {
            match set.tokens.get_mut(&token.trace_id) {
                Some(own) => own.push(token),
                None => drop(set.tokens.insert(token.trace_id.clone(), vec![token])),
            }
        }
        set.usable = traces.into_iter().map(|trace| (trace.trace_id, trace.usable)).collect();
        Ok(set)
    }

    /// Whether the labels were made from this file of traces, as far as their provenance says. Each token id is compared
    /// later, but a file that was made again may have the same tokens under other settings.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn are_of(&self, traces: &Path) -> Result<bool> {
        let inputs = self.made_by.get("inputs").and_then(|inputs| inputs.as_array());
        let made_from = inputs.and_then(|inputs| inputs.first()?["sha256"].as_str());
        Ok(match made_from {
            Some(made_from) => fs::fingerprint(traces)?.sha256 == made_from,
            None => true,
        })
    }

    /// Refuses labels that say nothing of any of the traces: every table would be empty.
    ///
    /// # Errors
    /// If no trace is usable, or no usable trace has a label.
    pub fn check_any(&self, traces: &[Trace]) -> Result<()> {
        let mut usable = traces.iter().filter(|trace| self.is_usable(&trace.trace_id)).peekable();
        if usable.peek().is_none() {
            return Err(InputError::NoUsable { path: self.path.clone(), n_traces: traces.len() }.into());
        }
        let is_labelled = |token: &LabelToken| token.tested && token.important.is_some();
        if !usable.any(|trace| self.of(&trace.trace_id).iter().any(is_labelled)) {
            return Err(InputError::NoLabel { path: self.path.clone() }.into());
        }
        Ok(())
    }

    /// Whether a trace has labels that mean something.
    pub fn is_usable(&self, trace_id: &str) -> bool {
        self.usable.get(trace_id) == Some(&true)
    }

    /// The token labels of a trace.
    pub fn of(&self, trace_id: &str) -> &[LabelToken] {
        self.tokens.get(trace_id).map_or(&[], Vec::as_slice)
    }

    /// The labels of the windows of a trace; `None` where the folder has no table of windows.
    pub fn windows_of(&self, trace_id: &str) -> Option<&[LabelWindow]> {
        self.windows.as_ref().map(|all| all.get(trace_id).map_or(&[][..], Vec::as_slice))
    }
}
