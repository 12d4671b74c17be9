//! What became of an answer, and whether that is a flip.

use epikv_grader::{Mode, Verdict, compare, extract};

use super::compared::{AnswerKind, Mapping};

/// The mode in which the grader says whether an answer changed.
pub const GRADER_MODE: Mode = Mode::Strict;

epikv_words::words! {
    /// How a regenerated answer compares with a reference.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Outcome {
        /// The same answer.
        Same = "same",
        /// The same value, written differently.
        SameValueOtherForm = "same_value_other_form",
        /// Another answer.
        Changed = "changed",
        /// The regeneration ended without an answer.
        NoAnswer = "no_answer",
        /// The regeneration was cut off before an answer.
        Truncated = "truncated",
        /// The grader could not decide.
        Unsure = "unsure",
    }
}

impl Outcome {
    /// Compares an answer with a reference; without an answer, `cut` says whether the regeneration was cut off.
    pub fn of(answer: Option<&str>, reference: &str, cut: bool, kind: AnswerKind, mode: Mode) -> Self {
        match answer {
            None if cut => Self::Truncated,
            None => Self::NoAnswer,
            Some(answer) if kind == AnswerKind::Text => {
                if answer == reference {
                    Self::Same
                } else {
                    Self::Changed
                }
            }
            Some(answer) => match compare(answer, reference, mode).verdict {
                Verdict::Same => Self::Same,
                Verdict::SameOtherForm => Self::SameValueOtherForm,
                Verdict::Different => Self::Changed,
                Verdict::Unsure(_) => Self::Unsure,
            },
        }
    }

    /// Whether the value is the same.
    pub fn is_same(self) -> bool {
        matches!(self, Self::Same | Self::SameValueOtherForm)
    }

    /// Whether this is a flip; `None` where it decides nothing.
    pub fn flipped(self, mapping: Mapping) -> Option<bool> {
        match (self, mapping) {
            (Self::Same | Self::SameValueOtherForm, _) => Some(false),
            (Self::Changed | Self::NoAnswer, _) | (Self::Truncated, Mapping::Paper) => Some(true),
            (Self::Truncated | Self::Unsure, _) => None,
        }
    }
}

/// The answer in a regenerated text: its last box, or, where the text was not cut off, what the fallbacks find; or all of
/// the text.
pub fn answer_in(text: &str, cut: bool, kind: AnswerKind) -> Option<String> {
    match kind {
        AnswerKind::Text => Some(text.trim().to_owned()),
        AnswerKind::Math => {
            let mode = if cut { Mode::Strict } else { Mode::Lenient };
            extract(text, mode).map(|found| found.answer.into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_and_flips() {
        let of = |answer, cut| Outcome::of(answer, "5", cut, AnswerKind::Math, Mode::Strict);
        assert_eq!(of(Some("5"), false), Outcome::Same);
        assert_eq!(of(Some("7"), true), Outcome::Changed, "a complete box counts although the text goes on");
        assert_eq!(of(None, false), Outcome::NoAnswer);
        assert_eq!(of(None, true), Outcome::Truncated);
        let flips = [Outcome::Same, Outcome::Changed, Outcome::NoAnswer, Outcome::Truncated, Outcome::Unsure];
        assert_eq!(flips.map(|o| o.flipped(Mapping::Control)), [Some(false), Some(true), Some(true), None, None]);
        assert_eq!(flips.map(|o| o.flipped(Mapping::Paper)), [Some(false), Some(true), Some(true), Some(true), None]);
    }

    #[test]
    fn text_answers_are_compared_to_the_letter() {
        let of = |text| {
            Outcome::of(answer_in(text, true, AnswerKind::Text).as_deref(), "1/2", true, AnswerKind::Text, Mode::Strict)
        };
        assert_eq!((of(" 1/2\n"), of("0.5"), of("")), (Outcome::Same, Outcome::Changed, Outcome::Changed));
    }

    #[test]
    fn an_unfinished_box_is_no_answer() {
        assert_eq!(answer_in(r"so \boxed{4} wait \boxed{5", true, AnswerKind::Math), None);
        assert_eq!(answer_in(r"so \boxed{4} wait \boxed{5}", true, AnswerKind::Math).as_deref(), Some("5"));
    }
}
