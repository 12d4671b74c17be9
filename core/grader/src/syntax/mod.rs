//! From text to typed values: cleaning, tokens, expressions, answers.

mod clean;
mod commands;
mod expr;
mod lex;
mod lex_command;
mod numeral;
mod outward;
mod parse;
mod primary;
mod read;
mod read_label;
mod read_quantity;
mod read_side;
mod repeating;
mod token;
mod units;
mod value;
mod words;

pub(crate) use clean::{clean, unwrap_box};
pub(crate) use expr::{Constant, Expr, Func};
pub(crate) use lex::lex;
pub(crate) use numeral::Options;
pub(crate) use read::{read, read_tokens};
pub(crate) use token::{Spaced, Token};
pub(crate) use units::{Unit, UnitKind};
pub(crate) use value::{Op, Quantity, Value};
pub(crate) use words::number_word;

use crate::verdict::Reason;

/// Result of reading: the reason says why an answer cannot be read.
pub(crate) type Read<T> = Result<T, Reason>;

/// Longest answer that is read, in bytes; longer ones are compared as text.
pub(crate) const LONGEST_ANSWER: usize = 8_192;
/// Most tokens of an answer.
pub(crate) const MOST_TOKENS: usize = 2_048;
/// Deepest nesting of brackets. Every recursion of the crate is bounded by this and the next number.
pub(crate) const DEEPEST: usize = 48;
/// Deepest nesting of grammar rules: a bracket takes up to four.
pub(crate) const DEEPEST_RULE: usize = 4 * DEEPEST;
