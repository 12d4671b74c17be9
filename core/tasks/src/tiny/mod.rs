//! Problems for the embedded model: chains of letters whose values a trace works out one by one.
//!
//! ```text
//! c 83 ; d 71 ; + - ; wait f ; h ? g + e
//! ```
//!
//! gives two start values and a rule. Each next letter is the previous two combined by the rule's operations in turn, digit
//! by digit, modulo 10 (`* 3` takes the earlier of them alone), up to the letter before the question mark. Letters behind `wait` are
//! checked again when they are done. The trace and the answer are
//!
//! ```text
//! e = c + d = 83 + 71 so e 54 . f = d - e = 71 - 54 so f 27 . wait check f = d - e = 71 - 54 so f 27 . yes .
//! g = e + f = 54 + 27 so g 71 . h = f - g = 27 - 71 so h 56 . </think> g 71 + e 54 = 71 + 54 = \boxed{ 25 }
//! ```
//!
//! A query of more than two values folds from the left, one sum at a time. The combined value is stated nowhere in the
//! trace, nor is it any letter's value by chance: it must be put together from values stated once, or twice where checked, so what an answer needs is known
//! ([`TinyProblem::gold_spans`]). Everything after the prompt follows from the prompt, so that a greedy model can be right
//! to the letter.
//!
//! [`TinyProblem::generate`] is a function of level, seed and number alone. [`vocabulary`] is the table of tokens,
//! `tokenizer_files` the same as files, [`lesson`] what a model is trained on.

mod chain;
mod draws;
pub mod lesson;
mod level;
mod problem;
#[cfg(test)]
mod tests;
mod tokenizer_files;
pub mod vocabulary;
mod write;

pub use chain::{Operation, Sign, Value};
pub use level::Level;
pub use problem::TinyProblem;
pub use tokenizer_files::write_tokenizer;
