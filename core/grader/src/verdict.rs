//! What a comparison says: a verdict, the mode it holds under and a sentence that explains it.

use std::fmt;

epikv_words::words! {
    /// How much is read into an answer. The README of the crate lists the difference rule by rule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Mode {
        /// For "did the answer change": nothing is forgiven that may matter.
        Strict = "strict",
        /// For "is the answer right" as benchmarks ask it: units, percent signs, letter case and the like are forgiven.
        Lenient = "lenient",
    }
}

epikv_words::words! {
    /// Why a comparison could not be decided.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Reason {
        /// An answer is longer than the parser reads, and the texts differ.
        TooLong = "too_long",
        /// An answer is nested deeper than the parser goes.
        TooDeep = "too_deep",
        /// An answer is written in notation that the parser does not know.
        Notation = "notation",
        /// A value is too large to be computed, such as `9^{9^{9^9}}`.
        TooLarge = "too_large",
        /// The work limit was reached.
        WorkLimit = "work_limit",
        /// The values agree as far as they were computed, and that is not far enough to call them equal.
        Precision = "precision",
        /// No point was found where both expressions have a value.
        Undefined = "undefined",
        /// The same items in another order, and nothing says whether the order matters.
        ListOrder = "list_order",
        /// One side carries a unit and the other does not.
        UnitMissing = "unit_missing",
        /// The same items or bounds, with brackets or set notation on one side only: a point, an interval or a list.
        Brackets = "brackets",
        /// The same number in another base, and the base may be what was asked for.
        Base = "base",
    }
}

impl Reason {
    /// The reason in words.
    pub(crate) fn explained(self) -> &'static str {
        match self {
            Self::TooLong => "an answer is too long to be read",
            Self::TooDeep => "an answer is nested too deeply",
            Self::Notation => "an answer is written in a notation that is not understood",
            Self::TooLarge => "a value is too large to be computed",
            Self::WorkLimit => "the work limit was reached",
            Self::Precision => "the values agree as far as they were computed",
            Self::Undefined => "the expressions have no value where they were tried",
            Self::ListOrder => "the items stand in another order, which may matter",
            Self::UnitMissing => "one side has a unit and the other has none",
            Self::Brackets => "one side has brackets or set notation and the other has not",
            Self::Base => "the same number is written in different bases",
        }
    }
}

/// Outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Same value, same form up to spacing and typesetting.
    Same,
    /// Same value written differently: `x = 5` and `5`, `1/2` and `0.5`.
    SameOtherForm,
    /// Different values.
    Different,
    /// Not decidable, with the reason. Never to be counted as a change silently.
    Unsure(Reason),
}

impl Verdict {
    /// Name in files: `same`, `same_other_form`, `different` or `unsure`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::SameOtherForm => "same_other_form",
            Self::Different => "different",
            Self::Unsure(_) => "unsure",
        }
    }

    /// Whether the values are equal, in whatever form.
    pub fn is_same(self) -> bool {
        matches!(self, Self::Same | Self::SameOtherForm)
    }

    /// The weaker of two verdicts about the parts of one answer: one different part makes the whole different.
    pub(crate) fn and(self, other: Self) -> Self {
        use Verdict::{Different, Same, SameOtherForm, Unsure};
        match (self, other) {
            (Different, _) | (_, Different) => Different,
            // The reason of the smaller name is kept, so that the order of the sides plays no part.
            (Unsure(a), Unsure(b)) => Unsure(if a.name() <= b.name() { a } else { b }),
            (Unsure(r), _) | (_, Unsure(r)) => Unsure(r),
            (SameOtherForm, _) | (_, SameOtherForm) => SameOtherForm,
            (Same, Same) => Same,
        }
    }

    /// Equal in value, but no longer in form.
    pub(crate) fn other_form(self) -> Self {
        if self == Self::Same { Self::SameOtherForm } else { self }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsure(reason) => write!(f, "unsure ({reason})"),
            _ => f.write_str(self.name()),
        }
    }
}

/// A verdict with a sentence that explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in one sentence for a person.
    pub explanation: String,
}
