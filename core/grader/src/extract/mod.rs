//! Finds the answer in a text: the last box, or in lenient mode a marked phrase, a formula or a number.

mod boxes;
mod fallback;
mod number;
mod sentence;
mod stream;

use std::borrow::Cow;

use crate::verdict::Mode;

pub use boxes::{boxes_start, last_box};
pub(crate) use boxes::{joined, scan};
pub use stream::BoxStream;

epikv_words::words! {
    /// The rule by which an answer was found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ExtractionRule {
        /// The last complete box; in lenient mode together with the boxes that stand right beside it.
        Boxed = "boxed",
        /// What follows `####`, the mark of GSM8K.
        HashMarks = "hash_marks",
        /// What follows "the answer is", "Final Answer:" and the like.
        FinalAnswerPhrase = "final_answer_phrase",
        /// The last formula between dollar signs, `\(..\)` or `\[..\]`.
        LastFormula = "last_formula",
        /// The last number of the text with what it is a part of, or the number that its only sentence begins with.
        LastNumber = "last_number",
    }
}

/// An answer found in a text, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extraction<'t> {
    /// The answer; owned only where several neighbouring boxes were joined.
    pub answer: Cow<'t, str>,
    /// The rule that found it.
    pub rule: ExtractionRule,
}

/// The answer that a text ends with, if it has one.
///
/// `Strict` takes boxes only. `Lenient` goes on to `####`, to phrases, to the last formula and to the last number.
/// In both modes a text whose last box is not closed has no answer: it was cut off while answering.
pub fn extract(text: &str, mode: Mode) -> Option<Extraction<'_>> {
    let boxes = scan(text);
    if boxes.open {
        return None;
    }
    if let Some(last) = boxes.complete.last() {
        let answer = match mode {
            Mode::Strict => Cow::Borrowed(last.content(text)),
            Mode::Lenient => joined(text, &boxes.complete),
        };
        return Some(Extraction { answer, rule: ExtractionRule::Boxed });
    }
    if mode == Mode::Strict {
        return None;
    }
    let (answer, rule) = fallback::find(text)?;
    Some(Extraction { answer: Cow::Borrowed(answer), rule })
}

/// The answer of the last box of a text, with the boxes joined to it; `None` where there is none or the last is not closed.
///
/// ```
/// assert_eq!(epikv_grader::boxed(r"so $x=\boxed{1}$, $\boxed{2}$.").as_deref(), Some("1, 2"));
/// assert_eq!(epikv_grader::boxed("so 3"), None);
/// ```
pub fn boxed(text: &str) -> Option<Cow<'_, str>> {
    let boxes = scan(text);
    (!boxes.open && !boxes.complete.is_empty()).then(|| joined(text, &boxes.complete))
}

/// The number that an answer begins with when a clause or a remark follows it: `25 (see above)`.
pub(crate) fn before_clause(text: &str) -> Option<&str> {
    fallback::before_clause(text)
}

/// The answer within a sentence without boxes.
pub(crate) fn find_in_prose(text: &str) -> Option<&str> {
    fallback::find(text).map(|(answer, _)| answer)
}
