//! Signal values and labels of the same tokens.

use epikv_schemas::LabelToken;

use crate::error::{Error, Result};
use crate::record::Recording;

/// The tokens of one trace that have both a value and a label.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Labelled {
    signal: Vec<f32>,
    important: Vec<bool>,
    n_undefined: usize,
}

impl Labelled {
    /// Pairs of value and label, in order of positions. A value that is null or not finite leaves its token out.
    pub fn new(tokens: impl IntoIterator<Item = (Option<f32>, bool)>) -> Self {
        let tokens = tokens.into_iter();
        let mut labelled = Self::default();
        labelled.signal.reserve(tokens.size_hint().0);
        labelled.important.reserve(tokens.size_hint().0);
        for (value, important) in tokens {
            match value.filter(|v| v.is_finite()) {
                Some(value) => {
                    labelled.signal.push(value);
                    labelled.important.push(important);
                }
                None => labelled.n_undefined += 1,
            }
        }
        labelled
    }

    /// Values, `[n]`, all finite.
    pub fn signal(&self) -> &[f32] {
        &self.signal
    }

    /// Labels, `[n]`.
    pub fn important(&self) -> &[bool] {
        &self.important
    }

    /// Labelled tokens that were left out because the signal is undefined there.
    pub fn n_undefined(&self) -> usize {
        self.n_undefined
    }
}

/// The tokens of one trace that count: those that were tested and whose label is not null, in order of positions.
///
/// The prompt is not tested, so it stays outside: a prompt labelled as important would make a signal out of position.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mask {
    tokens: Vec<(usize, bool)>,
}

impl Mask {
    /// The mask of a recorded trace. `labels` may hold other traces, whose rows are passed over.
    ///
    /// # Errors
    /// If a label names a position or a token that the recorded trace does not have.
    pub fn new<'l>(recording: &Recording, labels: impl IntoIterator<Item = &'l LabelToken>) -> Result<Self> {
        let mut mask = Self::default();
        for label in labels.into_iter().filter(|label| label.trace_id == recording.trace_id) {
            mask.add(recording, label)?;
        }
        mask.tokens.sort_unstable();
        Ok(mask)
    }

    /// Takes in a label of the recorded trace, in order of positions.
    pub(crate) fn add(&mut self, recording: &Recording, label: &LabelToken) -> Result<()> {
        let pos = position(recording, label)?;
        if let (true, Some(important)) = (label.tested, label.important) {
            self.tokens.push((pos, important));
        }
        Ok(())
    }

    /// Positions and labels, `[n]`.
    pub fn tokens(&self) -> &[(usize, bool)] {
        &self.tokens
    }

    /// Pairs a column, one value a token of the trace, with the labels.
    ///
    /// # Panics
    /// If the column is shorter than the recording that the mask was made for.
    pub fn pair(&self, values: &[Option<f32>]) -> Labelled {
        Labelled::new(self.tokens.iter().map(|&(pos, one)| (values[pos], one)))
    }
}

/// The position of a label, once it is known to be of this trace.
fn position(recording: &Recording, label: &LabelToken) -> Result<usize> {
    let other = |expected: String, got: String| Error::OtherLabels {
        trace_id: recording.trace_id.clone(),
        pos: label.pos,
        expected,
        got,
    };
    let at = usize::try_from(label.pos).ok().and_then(|pos| Some((pos, *recording.token_ids.get(pos)?)));
    let Some((pos, id)) = at else {
        return Err(other(format!("a position below {}", recording.token_ids.len()), label.pos.to_string()));
    };
    if i64::from(id) != i64::from(label.token_id) {
        return Err(other(format!("token {id}"), format!("token {}", label.token_id)));
    }
    Ok(pos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Column;
    use crate::shared::label;

    fn recording() -> Recording {
        let values = vec![None, Some(1.0), Some(2.0), None, Some(4.0)];
        Recording {
            trace_id: "t".to_owned(),
            token_ids: vec![10, 11, 12, 13, 14],
            n_prompt: 1,
            columns: vec![Column { signal: "hs_l2", layer: Some(0), values }],
        }
    }

    #[test]
    fn only_tested_tokens_with_a_label_and_a_value_are_paired() {
        let mut labels = vec![
            label(4, 14, true, Some(true)),
            label(0, 10, false, Some(true)), // prompt: not tested
            label(1, 11, true, Some(false)),
            label(2, 12, true, None),       // undecided
            label(3, 13, true, Some(true)), // no value
        ];
        labels.push(LabelToken { trace_id: "other".to_owned(), ..label(99, 1, true, Some(true)) });
        let mask = Mask::new(&recording(), &labels).expect("labels of this trace");
        let joined = mask.pair(&recording().columns[0].values);
        assert_eq!((joined.signal(), joined.important()), (&[1.0, 4.0][..], &[false, true][..]));
        assert_eq!(joined.n_undefined(), 1);
    }

    #[test]
    fn labels_of_another_trace_are_an_error() {
        let message = |label| Mask::new(&recording(), &[label]).expect_err("another trace").to_string();
        assert_eq!(
            message(label(1, 12, true, Some(true))),
            "trace t: label at position 1: expected token 11, got token 12"
        );
        assert_eq!(
            message(label(5, 10, true, Some(true))),
            "trace t: label at position 5: expected a position below 5, got 5"
        );
        assert!(message(label(-1, 10, true, Some(true))).contains("below 5"));
    }

    #[test]
    fn what_is_not_finite_is_undefined() {
        let labelled = Labelled::new([(Some(f32::NAN), true), (Some(f32::INFINITY), true), (Some(0.5), false)]);
        assert_eq!((labelled.signal(), labelled.n_undefined()), (&[0.5][..], 2));
    }
}
