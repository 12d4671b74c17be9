//! Decides whether two mathematical answers are the same.
//!
//! Text goes in, a [`Comparison`] comes out: the same, the same value in another form, different, or not decidable
//! with the reason. The relation is symmetric and reflexive, there is no reference side, so the crate serves both
//! "is this answer right" and "did this answer change".
//!
//! What it is not: a computer algebra system, a reader of proofs, or a judge of prose. It does no I/O, keeps no
//! state, never panics and does a bounded amount of work for any input.
//!
//! The way through the code: [`extract()`] finds the answer in a text, [`compare`] reads both answers into typed values
//! and compares these; numbers that are not exact are enclosed in balls of arbitrary precision.
//!
//! ```
//! use epikv_grader::{Mode, Verdict, compare, extract};
//!
//! let text = r"First \boxed{3}. Wait, I dropped a half: \boxed{\dfrac72}.";
//! let found = extract(text, Mode::Strict).expect("the text holds a box");
//! assert_eq!(found.answer, r"\dfrac72");
//! assert_eq!(compare(&found.answer, "3 1/2", Mode::Strict).verdict, Verdict::SameOtherForm);
//! assert_eq!(compare("1/2^{99}", "1/2^{98}", Mode::Lenient).verdict, Verdict::Different);
//! ```

mod equal;
mod extract;
mod number;
mod syntax;
mod verdict;

pub use equal::compare;
pub use extract::{BoxStream, Extraction, ExtractionRule, boxed, boxes_start, extract, last_box};
pub use verdict::{Comparison, Mode, Reason, Verdict};

/// Version of the rules, to be stored beside every verdict.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
