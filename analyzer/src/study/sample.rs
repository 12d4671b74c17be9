//! A trace, what was recorded of it, and its labels.

use epikv_schemas::Trace;

use crate::error::Result;
use crate::record::Recording;
use crate::study::join::Mask;
use crate::study::windows::Windows;

/// A trace with its labels and what was recorded of it.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Problem set of the trace.
    pub dataset: String,
    /// Problem that it solves; several samples of one problem are never split apart.
    pub problem_id: String,
    /// Signals of the model.
    pub recording: Recording,
    /// The same signals of random weights, where there are such.
    pub random: Option<Recording>,
    /// The tokens that count.
    pub mask: Mask,
    /// The occluded windows that count; `None` without labels of windows.
    pub windows: Option<Windows>,
}

impl Sample {
    /// Joins a trace, its recordings and its labels.
    ///
    /// # Errors
    /// If the labels belong to another trace.
    pub fn new<'l>(
        trace: &Trace,
        recording: Recording,
        random: Option<Recording>,
        labels: impl IntoIterator<Item = &'l epikv_schemas::LabelToken>,
    ) -> Result<Self> {
        let mask = Mask::new(&recording, labels)?;
        let (dataset, problem_id) = (trace.dataset.clone(), trace.problem_id.clone());
        Ok(Self { dataset, problem_id, recording, random, mask, windows: None })
    }

    /// The same with the labels of its windows.
    ///
    /// # Errors
    /// If they belong to another trace.
    pub fn with_windows<'l>(self, labels: impl IntoIterator<Item = &'l epikv_schemas::LabelWindow>) -> Result<Self> {
        let windows = Some(Windows::new(&self.recording, labels)?);
        Ok(Self { windows, ..self })
    }
}
