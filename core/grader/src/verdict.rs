//! What a comparison says: a verdict, the mode it holds under and a sentence that explains it.

use std::fmt;

/// How much is read into an answer. The README of the crate lists the difference rule by rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// For "did the answer change": nothing is forgiven that may matter.
    Strict,
    /// For "is the answer right" as benchmarks ask it: units, percent signs, letter case and the like are forgiven.
    Lenient,
}

impl Mode {
    /// Name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Lenient => "lenient",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a comparison could not be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// An answer is longer than the parser reads, and the texts differ.
    TooLong,
    /// An answer is nested deeper than the parser goes.
    TooDeep,
    /// An answer is written in notation that the parser does not know.
    Notation,
    /// A value is too large to be computed, such as `9^{9^{9^9}}`.
    TooLarge,
    /// The work limit was reached.
    WorkLimit,
    /// The values agree as far as they were computed, and that is not far enough to call them equal.
    Precision,
    /// No point was found where both expressions have a value.
    Undefined,
    /// The same items in another order, and nothing says whether the order matters.
    ListOrder,
    /// One side carries a unit and the other does not.
    UnitMissing,
    /// The same items or bounds, with brackets or set notation on one side only: a point, an interval or a list.
    Brackets,
    /// The same number in another base, and the base may be what was asked for.
    Base,
}

impl Reason {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::TooDeep => "too_deep",
            Self::Notation => "notation",
            Self::TooLarge => "too_large",
            Self::WorkLimit => "work_limit",
            Self::Precision => "precision",
            Self::Undefined => "undefined",
            Self::ListOrder => "list_order",
            Self::UnitMissing => "unit_missing",
            Self::Brackets => "brackets",
            Self::Base => "base",
        }
    }

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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
