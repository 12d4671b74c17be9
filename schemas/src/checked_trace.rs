//! A trace whose columns were checked against one another, since a file may hold anything.

use std::ops::Range;

use epikv_words::Hint;

use crate::Trace;

/// Why a trace cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Its columns contradict one another, or what was to be done with it.
    #[error("trace {trace_id}: {column}: expected {expected}, got {got}")]
    Broken {
        /// The trace.
        trace_id: String,
        /// The column.
        column: &'static str,
        /// What would fit.
        expected: String,
        /// What is stored.
        got: String,
    },
    /// It was made with another vocabulary.
    #[error("trace {trace_id}: token {id} at position {pos} is outside the model's vocabulary of {vocab_size}")]
    OtherVocabulary {
        /// The trace.
        trace_id: String,
        /// The id.
        id: u32,
        /// Where it stands.
        pos: usize,
        /// The model's vocabulary.
        vocab_size: usize,
    },
    /// It does not fit the model's context.
    #[error("trace {trace_id}: {n_tokens} tokens, the model's context is {max_positions}")]
    TooLong {
        /// The trace.
        trace_id: String,
        /// Tokens that the model would have to hold.
        n_tokens: usize,
        /// The model's context.
        max_positions: usize,
    },
}

impl Hint for TraceError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Broken { .. } => return None,
            Self::OtherVocabulary { .. } => "--model must be the one that the traces were made or imported with",
            Self::TooLong { .. } => "leave longer traces out, or take a model with a longer context",
        };
        Some(hint.to_owned())
    }
}

/// The tokens of a trace and its parts: `n_prompt <= reason_start <= boundary <= answer_end <= token_ids.len()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedTrace<'t> {
    trace_id: &'t str,
    /// All tokens; at least one.
    pub token_ids: Vec<u32>,
    /// Tokens of the prompt.
    pub n_prompt: usize,
    /// First reasoning token.
    pub reason_start: usize,
    /// First answer token.
    pub boundary: usize,
    /// Behind the last answer token.
    pub answer_end: usize,
    /// What the answer is known to need, none where that is not known.
    pub gold_spans: Vec<Range<usize>>,
}

impl Trace {
    /// The tokens and parts of the trace.
    ///
    /// # Errors
    /// If a token id is negative, there is none, a part ends before it begins or a span leaves the trace.
    pub fn checked(&self) -> Result<CheckedTrace<'_>, TraceError> {
        let n = self.token_ids.len();
        let mut checked = CheckedTrace {
            trace_id: &self.trace_id,
            token_ids: Vec::with_capacity(n),
            n_prompt: 0,
            reason_start: 0,
            boundary: 0,
            answer_end: 0,
            gold_spans: Vec::new(),
        };
        if n == 0 {
            return Err(checked.broken("token_ids", "at least one token", "none"));
        }
        for (pos, &id) in self.token_ids.iter().enumerate() {
            let id = u32::try_from(id)
                .map_err(|_| checked.broken("token_ids", "no negative id", format!("{id} at position {pos}")))?;
            checked.token_ids.push(id);
        }
        let within = |column, value: i64, from: usize| match usize::try_from(value) {
            Ok(place) if (from..=n).contains(&place) => Ok(place),
            _ => Err(checked.broken(column, format!("{from} to {n}"), value.to_string())),
        };
        let n_prompt = within("n_prompt", self.n_prompt.into(), 0)?;
        let reason_start = within("reason_start", self.reason_start.into(), n_prompt)?;
        let boundary = within("boundary", self.boundary.into(), reason_start)?;
        let answer_end = i64::from(self.boundary) + i64::from(self.n_answer);
        let answer_end = within("boundary + n_answer", answer_end, boundary)?;
        let span = |pair: &[i32]| match *pair {
            [start, end] => {
                let start = within("gold_spans", start.into(), 0)?;
                Ok(start..within("gold_spans", end.into(), start)?)
            }
            _ => Err(checked.broken("gold_spans", "pairs of start and end", format!("{} alone", pair[0]))),
        };
        let gold_spans =
            self.gold_spans.as_deref().unwrap_or_default().chunks(2).map(span).collect::<Result<_, _>>()?;
        Ok(CheckedTrace { n_prompt, reason_start, boundary, answer_end, gold_spans, ..checked })
    }
}

impl CheckedTrace<'_> {
    /// The error for a column that does not fit.
    pub fn broken(&self, column: &'static str, expected: impl Into<String>, got: impl Into<String>) -> TraceError {
        TraceError::Broken { trace_id: self.trace_id.to_owned(), column, expected: expected.into(), got: got.into() }
    }

    /// Whether a model knows all tokens and has room for `n_tokens`.
    ///
    /// # Errors
    /// If it has not, or does not.
    pub fn check_model(&self, n_tokens: usize, vocab_size: usize, max_positions: usize) -> Result<(), TraceError> {
        let trace_id = self.trace_id.to_owned();
        if n_tokens > max_positions {
            return Err(TraceError::TooLong { trace_id, n_tokens, max_positions });
        }
        match self.token_ids.iter().enumerate().find(|(_, id)| **id as usize >= vocab_size) {
            Some((pos, &id)) => Err(TraceError::OtherVocabulary { trace_id, id, pos, vocab_size }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample_rows;

    /// Ten tokens: a prompt of two, reasoning from the fourth, an answer of three from the sixth.
    fn trace() -> Trace {
        Trace {
            trace_id: "t".to_owned(),
            token_ids: (0..10).collect(),
            n_prompt: 2,
            reason_start: 3,
            boundary: 5,
            n_answer: 3,
            gold_spans: Some(vec![3, 4, 5, 5]),
            model: None,
            ..sample_rows::<Trace>(0, 1).remove(0)
        }
    }

    #[test]
    fn parts_are_places_in_the_tokens() {
        let trace = trace();
        let checked = trace.checked().expect("it fits");
        assert_eq!((checked.n_prompt, checked.reason_start, checked.boundary, checked.answer_end), (2, 3, 5, 8));
        assert_eq!((checked.token_ids.len(), checked.gold_spans.clone()), (10, vec![3..4, 5..5]));
        checked.check_model(10, 10, 10).expect("it fits");
        let message = |vocab_size, max_positions| {
            checked.check_model(10, vocab_size, max_positions).expect_err("refused").to_string()
        };
        assert_eq!(message(9, 10), "trace t: token 9 at position 9 is outside the model's vocabulary of 9");
        assert_eq!(message(10, 9), "trace t: 10 tokens, the model's context is 9");
    }

    #[test]
    fn what_contradicts_itself_is_named() {
        let message = |change: &dyn Fn(&mut Trace)| {
            let mut trace = trace();
            change(&mut trace);
            trace.checked().expect_err("refused").to_string()
        };
        assert_eq!(message(&|t| t.n_prompt = -1), "trace t: n_prompt: expected 0 to 10, got -1");
        assert_eq!(message(&|t| t.n_prompt = 11), "trace t: n_prompt: expected 0 to 10, got 11");
        assert_eq!(message(&|t| t.reason_start = 1), "trace t: reason_start: expected 2 to 10, got 1");
        assert_eq!(message(&|t| t.boundary = 2), "trace t: boundary: expected 3 to 10, got 2");
        assert_eq!(
            message(&|t| t.n_answer = i32::MAX),
            "trace t: boundary + n_answer: expected 5 to 10, got 2147483652"
        );
        assert_eq!(message(&|t| t.n_answer = -1), "trace t: boundary + n_answer: expected 5 to 10, got 4");
        assert_eq!(
            message(&|t| t.token_ids[3] = -7),
            "trace t: token_ids: expected no negative id, got -7 at position 3"
        );
        assert_eq!(message(&|t| t.token_ids.clear()), "trace t: token_ids: expected at least one token, got none");
        let spans = |spans: &[i32]| message(&|t| t.gold_spans = Some(spans.to_vec()));
        assert_eq!(spans(&[3, 4, 5]), "trace t: gold_spans: expected pairs of start and end, got 5 alone");
        assert_eq!(spans(&[4, 3]), "trace t: gold_spans: expected 4 to 10, got 3");
        assert_eq!(spans(&[4, 11]), "trace t: gold_spans: expected 4 to 10, got 11");
    }
}
