//! Compares two answers: first as text, then as typed values, then, in lenient mode, in the other ways in which an
//! answer can be read.

mod collection;
mod context;
mod eval;
mod exact;
mod matrix;
mod modular;
mod named;
mod number;
mod parts;
mod plain_units;
mod readings;
mod relation;
mod same_factors;
mod scalar;
mod side;
mod solution;
mod union;
mod value;

use self::context::Context;
use self::side::Side;
use crate::syntax::{LONGEST_ANSWER, Read, Spaced, Token, Value};
use crate::verdict::{Comparison, Mode, Verdict};

/// Compares two answers. The order of the two plays no part.
///
/// An answer may be bare (`1/2`), in delimiters (`$1/2$`) or in a box; a whole solution should go through
/// [`extract`](crate::extract()) first.
///
/// ```
/// use epikv_grader::{Mode, Verdict, compare};
///
/// assert_eq!(compare("x = 5", "5", Mode::Strict).verdict, Verdict::SameOtherForm);
/// assert_eq!(compare("[-2,7)", "[-2,7]", Mode::Lenient).verdict, Verdict::Different);
/// assert_eq!(compare("50", "0.5", Mode::Lenient).verdict, Verdict::Different);
/// assert!(compare("10", r"10\%", Mode::Lenient).verdict.is_same());
/// assert!(!compare("10", r"10\%", Mode::Strict).verdict.is_same());
/// ```
pub fn compare(a: &str, b: &str, mode: Mode) -> Comparison {
    // The smaller text goes first: whatever happens from here on, the order of the arguments plays no part.
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    if a == b {
        return said(Verdict::Same, "the texts are the same".to_owned());
    }
    if a.len().max(b.len()) > 4 * LONGEST_ANSWER {
        return long(a, b);
    }
    let (a, b) = (Side::new(a), Side::new(b));
    if same_text(&a, &b) {
        return said(Verdict::Same, "the texts are the same up to spacing and typesetting".to_owned());
    }
    let mut context = Context::new(mode, value::compare);
    let verdict = match (&a.value, &b.value) {
        (Ok(left), Ok(right)) => value::compare(left, right, &mut context),
        (Err(reason), Ok(_)) | (Ok(_), Err(reason)) => Verdict::Unsure(*reason),
        (Err(left), Err(right)) => Verdict::Unsure(if left.name() <= right.name() { *left } else { *right }),
    };
    // What decided about one item of a list says nothing about the list.
    let scalar = |side: &Side| matches!(side.value.as_ref().map(Value::unnamed), Ok(Value::Scalar(_)));
    let note = context.note.take().filter(|_| scalar(&a) && scalar(&b));
    if verdict.is_same() {
        let text = note.unwrap_or_else(|| "the values are equal".to_owned());
        return said(verdict, describe(&a.value, &b.value, &text));
    }
    if let Some((verdict, how)) = readings::compare(&a, &b, &mut context) {
        return said(verdict, how);
    }
    let text = match verdict {
        Verdict::Unsure(reason) => format!("could not be decided: {}", reason.explained()),
        _ => note.map_or_else(|| "the values differ".to_owned(), |note| format!("the values differ: {note}")),
    };
    said(verdict, describe(&a.value, &b.value, &text))
}

fn said(verdict: Verdict, explanation: String) -> Comparison {
    Comparison { verdict, explanation }
}

fn describe(a: &Read<Value>, b: &Read<Value>, what: &str) -> String {
    let kind = |value: &Read<Value>| value.as_ref().map_or("unread text", value::kind);
    let (left, right) = (kind(a), kind(b));
    if left == right { format!("{what} (two answers of kind {left})") } else { format!("{what} ({left} and {right})") }
}

/// Answers too long to be read are compared without their spaces.
fn long(a: &str, b: &str) -> Comparison {
    let visible = |c: &char| !c.is_whitespace();
    if a.chars().filter(visible).eq(b.chars().filter(visible)) {
        return said(Verdict::Same, "the texts are the same up to spacing".to_owned());
    }
    said(Verdict::Unsure(crate::Reason::TooLong), "too long to be read, and the texts differ".to_owned())
}

/// Whether two cleaned answers consist of the same tokens.
fn same_text(a: &Side, b: &Side) -> bool {
    if a.text == b.text {
        return true;
    }
    match (&a.tokens, &b.tokens) {
        (Ok(a), Ok(b)) => ungrouped(a).eq(ungrouped(b)),
        _ => false,
    }
}

/// The tokens without the braces around single ones: `x^{2}` is `x^2`.
pub(super) fn ungrouped(tokens: &[Spaced]) -> impl Iterator<Item = &Token> {
    let is = move |at: usize, c: char| tokens.get(at).is_some_and(|(token, _)| token.is(c));
    let single = move |open: usize| is(open, '{') && is(open + 2, '}');
    let kept = move |at: &usize| !(single(*at) || (*at > 1 && is(*at, '}') && single(*at - 2)));
    (0..tokens.len()).filter(kept).map(|at| &tokens[at].0)
}
