//! The occluded windows of a trace, which are the units of the intervention.
//!
//! Tokens of a window share its label, so a coefficient over tokens counts each intervention many times. Here a window has
//! one value, the mean of the signal over its tokens, and one label, whether hiding it flipped the answer.

use epikv_schemas::LabelWindow;

use crate::error::{Error, Result};
use crate::record::Recording;
use crate::study::join::Labelled;

/// Windows whose outcome is decided, in order of their starts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Windows {
    /// Half-open ranges of positions, and whether the answer flipped.
    windows: Vec<(usize, usize, bool)>,
}

impl Windows {
    /// The windows of a recorded trace. `labels` may hold other traces, whose rows are passed over.
    ///
    /// # Errors
    /// If a window lies outside the recorded trace.
    pub fn new<'l>(recording: &Recording, labels: impl IntoIterator<Item = &'l LabelWindow>) -> Result<Self> {
        let mut all = Self::default();
        for label in labels.into_iter().filter(|label| label.trace_id == recording.trace_id) {
            all.add(recording, label)?;
        }
        all.windows.sort_unstable();
        Ok(all)
    }

    /// Takes in a window of the recorded trace, in order of starts.
    pub(crate) fn add(&mut self, recording: &Recording, label: &LabelWindow) -> Result<()> {
        let n = recording.token_ids.len();
        let span = usize::try_from(label.start).ok().zip(usize::try_from(label.end).ok());
        let Some((start, end)) = span.filter(|(start, end)| start < end && *end <= n) else {
            return Err(Error::OtherLabels {
                trace_id: recording.trace_id.clone(),
                pos: label.start,
                expected: format!("a window inside 0..{n}"),
                got: format!("{}..{}", label.start, label.end),
            });
        };
        if let Some(flipped) = label.flipped {
            self.windows.push((start, end, flipped));
        }
        Ok(())
    }

    /// Pairs the mean of a column over each window with its outcome. A window without any value has no mean.
    ///
    /// # Panics
    /// If the column is shorter than the recording that the windows were made for.
    pub fn pair(&self, values: &[Option<f32>]) -> Labelled {
        Labelled::new(self.windows.iter().map(|&(start, end, flipped)| {
            let defined = values[start..end].iter().flatten();
            let (sum, n) = defined.fold((0.0, 0_u32), |(sum, n), &x| (sum + f64::from(x), n + 1));
            ((n > 0).then(|| (sum / f64::from(n)) as f32), flipped)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(start: i32, end: i32, flipped: Option<bool>) -> LabelWindow {
        LabelWindow {
            trace_id: "t".to_owned(),
            window: start,
            start,
            end,
            filler: "eos".to_owned(),
            filler_ids_sha: String::new(),
            answer: None,
            outcome: "same".to_owned(),
            flipped,
            n_new: 1,
            hit_limit: false,
            min_margin: None,
            answer_text: String::new(),
            logprob_drop: None,
            readable_after: None,
        }
    }

    fn recording() -> Recording {
        Recording { trace_id: "t".to_owned(), token_ids: vec![1; 6], n_prompt: 1, columns: Vec::new() }
    }

    #[test]
    fn a_window_has_the_mean_of_its_tokens() {
        let mut other = label(0, 99, Some(true));
        other.trace_id = "other".to_owned();
        let labels =
            [label(3, 6, Some(true)), label(1, 4, Some(false)), label(0, 1, Some(true)), label(2, 3, None), other];
        let windows = Windows::new(&recording(), &labels).expect("its windows");
        let paired = windows.pair(&[None, Some(1.0), Some(2.0), None, Some(4.0), Some(8.0)]);
        assert_eq!((paired.signal(), paired.important()), (&[1.5, 6.0][..], &[false, true][..]));
        assert_eq!(paired.n_undefined(), 1, "the window over the first token has no value");
    }

    #[test]
    fn a_window_outside_the_trace_is_refused() {
        let error = Windows::new(&recording(), &[label(3, 7, Some(true))]).expect_err("six tokens");
        assert_eq!(error.to_string(), "trace t: label at position 3: expected a window inside 0..6, got 3..7");
    }
}
