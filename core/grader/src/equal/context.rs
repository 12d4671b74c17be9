//! State that all parts of a comparison share.

use crate::syntax::Value;
use crate::verdict::{Mode, Verdict};

/// Steps of a whole comparison: some milliseconds.
const WORK: u32 = 12_000;

/// Most parts of an expression that a comparison builds out of those that were read: more of them could not be evaluated
/// within the steps of a comparison anyway.
pub(super) const MOST_PARTS: usize = 16_384;

/// Compares two values by the rules for their kinds.
type Rules = fn(&Value, &Value, &mut Context) -> Verdict;

/// The mode, the work that is left, and the rules for values inside values.
pub(crate) struct Context {
    pub(crate) mode: Mode,
    /// Steps of arithmetic that are left; a limit of work instead of time keeps results reproducible.
    pub(crate) work: u32,
    /// What decided about two numbers, where that is not plain from them: a decimal that was rounded.
    pub(crate) note: Option<String>,
    rules: Rules,
}

impl Context {
    pub(super) fn new(mode: Mode, rules: Rules) -> Self {
        Self { mode, work: WORK, note: None, rules }
    }

    pub(crate) fn lenient(&self) -> bool {
        self.mode == Mode::Lenient
    }

    /// Compares two values, such as the items of two lists. The rules for lists, unions, relations and names get at the
    /// rules for what is inside them here, so that none of them names the others.
    pub(super) fn compare(&mut self, a: &Value, b: &Value) -> Verdict {
        (self.rules)(a, b, self)
    }
}
