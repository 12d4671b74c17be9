//! Finds prompt, reasoning and answer of a trace.
//!
//! The rules, first that applies, over the generated text only (a prompt may mention the tag or a box):
//!
//! 1. `think_end`: the answer begins after the last `</think>`;
//! 2. `boxed`: else at the token that starts the last `\boxed{`;
//! 3. `last64`: else with the last 64 tokens. Nothing in the text says so: trust such a trace less.
//!
//! Tags and boxes are found by byte offset in the decoded text, so it does not matter whether a tag is one special token
//! or several ordinary ones, or whether a token also holds what stands before or after. A boundary inside a token goes
//! behind it for tags and before it for boxes. Empty spans and spans shorter than a window are values, not errors.

use std::ops::Range;

use epikv_model::tokenizer::{TokenText, Tokenizer};

use crate::error::{Error, Result};
use crate::prompt::{THINK_END, THINK_START};

/// Start of a boxed answer.
const BOX: &str = r"\boxed{";

/// Length of the answer where nothing marks one.
const LAST: usize = 64;

epikv_words::words! {
    /// The rule that found the answer's beginning.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum BoundaryKind {
        /// After the last closing think tag.
        ThinkEnd = "think_end",
        /// At the last box.
        Boxed = "boxed",
        /// The last 64 tokens.
        Last64 = "last64",
    }
}

/// Spans of a trace, as token indices from the first of the prompt.
/// `n_prompt <= reason_start <= boundary <= end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans {
    /// Tokens of the prompt.
    pub n_prompt: usize,
    /// First reasoning token: behind the prompt, and behind an opening tag that the model wrote itself.
    pub reason_start: usize,
    /// First answer token. The closing tag and the white space after it belong to the reasoning.
    pub boundary: usize,
    /// Behind the last answer token: end-of-sequence and padding are not part of the answer.
    pub end: usize,
    /// The rule that was used.
    pub kind: BoundaryKind,
    /// Closing tags in the generated text; with several, the last one counted.
    pub n_think_end: usize,
}

impl Spans {
    /// The reasoning tokens.
    pub fn reasoning(&self) -> Range<usize> {
        self.reason_start..self.boundary
    }

    /// The answer tokens.
    pub fn answer(&self) -> Range<usize> {
        self.boundary..self.end
    }
}

/// A trace's spans and the text of its generated part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The spans.
    pub spans: Spans,
    /// Bytes of the generated tokens; token `i` of it is token `n_prompt + i` of the trace.
    pub generated: TokenText,
}

impl Split {
    /// What the model wrote, without the end-of-sequence and padding behind it.
    pub fn text(&self) -> String {
        self.bytes_to(self.spans.n_prompt, self.spans.end)
    }

    /// The answer's text.
    pub fn answer_text(&self) -> String {
        self.bytes_to(self.spans.boundary, self.spans.end)
    }

    fn bytes_to(&self, from: usize, to: usize) -> String {
        let byte = |token: usize| end_of(&self.generated, token - self.spans.n_prompt);
        String::from_utf8_lossy(&self.generated.bytes[byte(from)..byte(to)]).into_owned()
    }
}

/// Finds the spans of a trace whose first `n_prompt` tokens are the prompt.
pub fn find_spans(tokenizer: &Tokenizer, token_ids: &[u32], n_prompt: usize) -> Result<Split> {
    let Some(ids) = token_ids.get(n_prompt..) else {
        return Err(Error::PromptTooLong { n_prompt, n_tokens: token_ids.len() });
    };
    let generated = tokenizer.byte_offsets(ids)?;
    let end = content_end(tokenizer, ids, &generated);
    let start = opening(&generated, end);
    let text = &generated.bytes[..end_of(&generated, end)];

    let tags: Vec<usize> = find_all(text, THINK_END.as_bytes());
    let (kind, boundary) = if let Some(&tag) = tags.last() {
        let holder = generated.token_at(tag + THINK_END.len() - 1);
        (BoundaryKind::ThinkEnd, skip_space(&generated, holder + 1, end))
    } else if let Some(&found) = find_all(text, BOX.as_bytes()).last() {
        (BoundaryKind::Boxed, generated.token_at(found))
    } else {
        (BoundaryKind::Last64, end.saturating_sub(LAST))
    };
    let boundary = boundary.clamp(start, end);
    let spans = Spans {
        n_prompt,
        reason_start: n_prompt + start,
        boundary: n_prompt + boundary,
        end: n_prompt + end,
        kind,
        n_think_end: tags.len(),
    };
    Ok(Split { spans, generated })
}

/// Tokens up to the control tokens at the end. Think tags are content, even where a tokenizer calls them special.
fn content_end(tokenizer: &Tokenizer, ids: &[u32], text: &TokenText) -> usize {
    let trailing = |index: &usize| {
        let tag = matches!(text.token_bytes(*index), b"<think>" | b"</think>");
        tokenizer.is_special(ids[*index]) && !tag
    };
    ids.len() - (0..ids.len()).rev().take_while(trailing).count()
}

/// First token behind an opening tag and the white space around it; 0 if the text does not begin with one.
fn opening(text: &TokenText, end: usize) -> usize {
    let first = skip_space(text, 0, end);
    let bytes = &text.bytes[end_of(text, first)..];
    let lead = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if !bytes[lead..].starts_with(THINK_START.as_bytes()) {
        return 0;
    }
    let holder = text.token_at(end_of(text, first) + lead + THINK_START.len() - 1);
    skip_space(text, holder + 1, end)
}

/// The first token from `from` on that holds more than white space.
fn skip_space(text: &TokenText, from: usize, end: usize) -> usize {
    let blank = |index: &usize| {
        let bytes = text.token_bytes(*index);
        !bytes.is_empty() && std::str::from_utf8(bytes).is_ok_and(|token| token.trim().is_empty())
    };
    let from = from.min(end);
    from + (from..end).take_while(blank).count()
}

/// Bytes of the first `n` tokens.
fn end_of(text: &TokenText, n: usize) -> usize {
    if n == 0 { 0 } else { text.ends[n - 1] }
}

/// Offsets of all occurrences, none overlapping.
fn find_all(text: &[u8], pattern: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = text[at..].windows(pattern.len()).position(|window| window == pattern) {
        found.push(at + offset);
        at += offset + pattern.len();
    }
    found
}

#[cfg(test)]
mod tests;
