//! One of the two answers, cleaned, split into tokens and read.

use crate::syntax::{Options, Read, Spaced, Value, clean, lex, read_tokens, unwrap_box};

/// How most answers are meant: a comma before three digits groups them.
pub(super) const USUAL: Options = Options { commas: true, spaces: false, decimal_comma: false };

/// One of the two answers.
pub(super) struct Side {
    /// As handed over.
    pub(super) given: String,
    /// Without boxes and delimiters.
    pub(super) text: String,
    pub(super) tokens: Read<Vec<Spaced>>,
    pub(super) value: Read<Value>,
}

impl Side {
    pub(super) fn new(given: &str) -> Self {
        let text = clean(&unwrap_box(given));
        let tokens = lex(&text, USUAL);
        let value = tokens.clone().and_then(read_tokens);
        Self { given: given.to_owned(), text, tokens, value }
    }
}
