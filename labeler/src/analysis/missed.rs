//! Why was a value missed? A value is missed if windows hide it and none of them flips. For each such value: the
//! answers that were given, and whether the trace states the value elsewhere.
//!
//! The value counts as stated elsewhere if, for each window that hides it, its digits stand in the reasoning outside that
//! window, as an operand of another step or as the value of another letter: the model could copy them. Otherwise the answer
//! was guessed, or computed from other values.

use std::collections::BTreeMap;
use std::ops::Range;

use epikv_model::tokenizer::TokenText;
use epikv_schemas::{LabelTrace, LabelWindow, Trace};
use serde::Serialize;

use crate::analysis::known::{hides, values};

/// A needed value that was missed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// The trace.
    pub trace_id: String,
    /// How the trace states the value.
    pub text: String,
    /// The decided windows that hide it.
    pub windows: Vec<Hiding>,
    /// Whether its digits stand outside of each of these windows.
    pub has_another_way: bool,
}

/// A window that hides a value and leaves the answer as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hiding {
    /// First token.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// What was answered.
    pub answer: Option<String>,
    /// How often the digits of the value stand in the reasoning outside of the window.
    pub n_elsewhere: usize,
}

/// The missed values of usable traces, in the order of `traces`; `read` gives the text of tokens.
///
/// # Errors
/// If `read` fails.
pub fn missed<E>(
    windows: &[LabelWindow],
    labelled: &[LabelTrace],
    traces: &[Trace],
    read: impl Fn(&[i32]) -> Result<TokenText, E>,
) -> Result<Vec<Missed>, E> {
    let usable = labelled.iter().filter(|trace| trace.usable);
    let mut decided: BTreeMap<&str, Vec<&LabelWindow>> =
        usable.map(|trace| (trace.trace_id.as_str(), Vec::new())).collect();
    for window in windows.iter().filter(|window| window.flipped.is_some()) {
        if let Some(own) = decided.get_mut(window.trace_id.as_str()) {
            own.push(window);
        }
    }
    let mut all = Vec::new();
    for trace in traces {
        let Some(own) = decided.get(trace.trace_id.as_str()) else { continue };
        for mentions in values(trace) {
            let hiding: Vec<&LabelWindow> = own.iter().copied().filter(|w| hides(&span(w), &mentions)).collect();
            if !hiding.is_empty() && hiding.iter().all(|window| window.flipped == Some(false)) {
                let first = mentions.first().cloned().unwrap_or_default();
                let text = read(&trace.token_ids[first])?.text().trim().to_owned();
                let places = places(trace, digits(&text), &read)?;
                let of_window = |window: &LabelWindow| {
                    let Range { start, end } = span(window);
                    let n_elsewhere = places.iter().filter(|place| place.end <= start || end <= place.start).count();
                    Hiding { start, end, answer: window.answer.clone(), n_elsewhere }
                };
                let windows: Vec<Hiding> = hiding.into_iter().map(of_window).collect();
                let has_another_way = windows.iter().all(|window| window.n_elsewhere > 0);
                all.push(Missed { trace_id: trace.trace_id.clone(), text, windows, has_another_way });
            }
        }
    }
    Ok(all)
}

fn span(window: &LabelWindow) -> Range<usize> {
    window.start as usize..window.end as usize
}

/// The last number of a text; all of it where it has none.
fn digits(text: &str) -> &str {
    text.rsplit(|letter: char| !letter.is_ascii_digit()).find(|number| !number.is_empty()).unwrap_or(text)
}

/// The tokens of each place at which a number stands in the reasoning by itself.
fn places<E>(
    trace: &Trace,
    number: &str,
    read: impl Fn(&[i32]) -> Result<TokenText, E>,
) -> Result<Vec<Range<usize>>, E> {
    let from = trace.reason_start.max(0) as usize;
    let Some(ids) = trace.token_ids.get(from..trace.boundary.max(0) as usize) else { return Ok(Vec::new()) };
    let read = read(ids)?;
    let bytes = &read.bytes;
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let stands = |at: &usize| {
        let end = at + number.len();
        bytes[*at..end] == *number.as_bytes() && !is_digit(at.checked_sub(1)) && !is_digit(Some(end))
    };
    let n = number.len();
    let starts = (0..(bytes.len() + 1).saturating_sub(n)).filter(|at| n > 0 && stands(at));
    Ok(starts.map(|at| from + read.token_at(at)..from + read.token_at(at + n - 1) + 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::shared;

    /// Tokens are letters, as their code points.
    #[test]
    fn a_value_that_stands_elsewhere_had_another_way_and_one_that_does_not_was_guessed() {
        let text = "so e 54 . so f = 54 + 17 . so g 540 . so h 31 . yes";
        let mut trace = shared::trace("t", &text.bytes().map(i32::from).collect::<Vec<_>>());
        (trace.reason_start, trace.n_prompt) = (0, 0);
        let at = |value: &str| text.find(value).map(|at| [at as i32, (at + value.len()) as i32]).expect("stands there");
        trace.gold_spans = Some([at("e 54"), at("h 31")].concat());
        let window = |start: i32, end: i32, flipped| LabelWindow {
            flipped,
            answer: Some("9".to_owned()),
            ..shared::window("t", start, end, "same")
        };
        let read = |ids: &[i32]| {
            let bytes: Vec<u8> = ids.iter().map(|&id| id as u8).collect();
            Ok::<_, std::convert::Infallible>(TokenText { ends: (1..=bytes.len()).collect(), bytes })
        };
        let labelled = [shared::labelled("t")];
        let found = |windows: &[LabelWindow]| missed(windows, &labelled, &[trace.clone()], read).expect("reads");

        let all = found(&[window(0, 9, Some(false)), window(0, 24, Some(false)), window(36, 48, Some(false))]);
        let texts: Vec<(&str, bool)> = all.iter().map(|one| (one.text.as_str(), one.has_another_way)).collect();
        assert_eq!(texts, [("e 54", false), ("h 31", false)], "the wider window hides the operand too");
        let counts: Vec<usize> = all[0].windows.iter().map(|window| window.n_elsewhere).collect();
        assert_eq!(counts, [1, 0], "540 is another number");
        let all = found(&[window(0, 9, Some(false)), window(20, 30, Some(true))]);
        assert_eq!((all.len(), all[0].has_another_way, all[0].windows[0].answer.as_deref()), (1, true, Some("9")));
        assert!(found(&[window(0, 9, Some(false)), window(0, 12, Some(true))]).is_empty(), "a window found it");
        assert!(found(&[window(0, 9, None)]).is_empty(), "nothing was decided");
    }

    #[test]
    fn the_number_of_a_statement_is_its_last() {
        assert_eq!([digits("e 54"), digits("x1 = 7 ."), digits("so"), digits("")], ["54", "7", "so", ""]);
    }
}
