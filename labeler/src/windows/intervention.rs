//! Interventions: what is done to a window, and the context that the answer is regenerated from.
//!
//! With the window at `[s, e)`, the answer boundary at `b`, and `f` the filler:
//!
//! | intervention | context of the answer | who cannot see the window |
//! | --- | --- | --- |
//! | `occlude` | `x[..s] f.. x[e..b]` | no token sees its content; the positions stay |
//! | `masked-all` | `x[..s]`, then `x[e..b]` at their own positions | every token after it, computed again |
//! | `masked-answer` | `x[..b]`, the window's keys and values removed | the last context token and the answer |
//! | `evict`, lag `w` | `x[..e+w]`, the window's keys and values removed | the token `e+w-1` and all that the model then writes, reasoning included |
//! | `truncate` | `x[..s]` and the closing tag of `x` | nothing after `s` is left; the context gets shorter |
//!
//! The last token of the context, whose logits give the first answer token, is read after the removal. It is the first
//! token that cannot see the window, and it stays even where the window covers it. Only `occlude` overwrites anything,
//! so only it has a filler, and only fillers are compared by kappa.

use std::ops::Range;

use epikv_words::Word;
use serde::Serialize;

/// What is done to a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intervention {
    /// Overwritten by filler.
    #[default]
    Occlude,
    /// Hidden from the answer only, as if evicted just before it.
    MaskedAnswer,
    /// Hidden from everything after it.
    MaskedAll,
    /// The trace ends at the window: a variant that the paper rejected, since it measures positions.
    Truncate,
    /// Dropped from the cache some tokens after its end; the model goes on by itself.
    Evict {
        /// Tokens of the trace that still see the window.
        lag: usize,
    },
}

/// The lag where none is given.
pub const DEFAULT_LAG: usize = 64;

/// The names are without parameters.
impl Word for Intervention {
    const VALUES: &'static [Self] =
        &[Self::Occlude, Self::MaskedAnswer, Self::MaskedAll, Self::Truncate, Self::Evict { lag: DEFAULT_LAG }];

    fn name(self) -> &'static str {
        match self {
            Self::Occlude => "occlude",
            Self::MaskedAnswer => "masked-answer",
            Self::MaskedAll => "masked-all",
            Self::Truncate => "truncate",
            Self::Evict { .. } => "evict",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            Self::Occlude => "Overwrite it by filler",
            Self::MaskedAnswer => "Hide it from the answer only, as if it was evicted just before the answer",
            Self::MaskedAll => "Hide it from everything after it",
            Self::Truncate => "End the trace where the window starts. This measures positions; for comparison only",
            Self::Evict { .. } => "Evict it from the cache --lag tokens after its end, and let the model write on",
        }
    }
}

impl Intervention {
    /// The intervention with this lag, where it has one.
    #[must_use]
    pub fn with_lag(self, lag: usize) -> Self {
        match self {
            Self::Evict { .. } => Self::Evict { lag },
            other => other,
        }
    }

    /// Whether the model writes reasoning of its own before the answer.
    pub fn runs_on(self) -> bool {
        matches!(self, Self::Evict { .. })
    }

    /// Tokens of the trace that the context of the answer begins with, and the places among those before the last of them
    /// that are removed from the cache.
    pub(crate) fn context(self, span: &Range<usize>, boundary: usize) -> (usize, Option<Range<usize>>) {
        let without = |n: usize| (n, Some(span.start.min(n - 1)..span.end.min(n - 1)));
        match self {
            Self::Occlude => (boundary, None),
            Self::Truncate => (span.start, None),
            Self::MaskedAnswer | Self::MaskedAll => without(boundary),
            Self::Evict { lag } => without(boundary.min(span.end.saturating_add(lag))),
        }
    }

    /// Tokens of the context whose keys and values are those of the trace, so that they need not be computed again.
    pub(crate) fn n_shared(self, span: &Range<usize>, n_context: usize) -> usize {
        match self {
            Self::Occlude | Self::Truncate => span.start.min(n_context - 1),
            Self::MaskedAll => span.end.min(n_context - 1),
            Self::MaskedAnswer | Self::Evict { .. } => n_context - 1,
        }
    }
}

impl std::fmt::Display for Intervention {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Evict { lag } => write!(f, "evict(lag={lag})"),
            other => f.write_str(other.name()),
        }
    }
}

impl Serialize for Intervention {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_as_the_table_says() {
        let (span, b) = (10..20, 50);
        let of = |intervention: Intervention, span: &Range<usize>| {
            let (n, hidden) = intervention.context(span, b);
            (n, hidden, intervention.n_shared(span, n))
        };
        assert_eq!(of(Intervention::Occlude, &span), (50, None, 10));
        assert_eq!(of(Intervention::MaskedAll, &span), (50, Some(10..20), 20));
        assert_eq!(of(Intervention::MaskedAnswer, &span), (50, Some(10..20), 49));
        assert_eq!(of(Intervention::Evict { lag: 8 }, &span), (28, Some(10..20), 27));
        assert_eq!(of(Intervention::Evict { lag: 0 }, &span), (20, Some(10..19), 19), "the last token is read again");
        assert_eq!(of(Intervention::Evict { lag: 90 }, &span), of(Intervention::MaskedAnswer, &span));
        assert_eq!(of(Intervention::Truncate, &span), (10, None, 9));
        assert_eq!(of(Intervention::MaskedAll, &(40..50)), (50, Some(40..49), 49), "the last token stays");
        assert_eq!(of(Intervention::MaskedAnswer, &(49..50)), (50, Some(49..49), 49), "and then nothing is hidden");
    }
}
