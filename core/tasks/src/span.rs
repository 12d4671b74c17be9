//! Finds prompt, reasoning and answer of a trace.
//!
//! The rules, first that applies, over the generated text only (a prompt may mention the tag or a box):
//!
//! 1. `think_end`: the answer begins after the last `</think>`, or the last closing tag of another kind ([`Tags`]);
//! 2. `boxed`: else at the token that starts the last box, or the first of the boxes that are one answer with it; a box
//!    that holds nothing or only space is none;
//! 3. `last64`: else with the last 64 tokens. Nothing in the text says so: trust such a trace less.
//!
//! The text ends before the first token that ends a sequence or a turn (`</s>`, `<|im_end|>`, ...), whether the tokenizer
//! has it as one token or spells it out; what stands behind it is a later turn or padding.
//!
//! Tags and boxes are found by byte offset in the decoded text, so it does not matter whether a tag is one special token
//! or several ordinary ones, or whether a token also holds what stands before or after. A boundary inside a token goes
//! behind it for tags and before it for boxes. Empty spans and spans shorter than a window are values, not errors.

use std::ops::Range;

use epikv_model::tokenizer::{TokenText, Tokenizer};

use crate::error::{Error, Result};
use crate::prompt::{THINK_END, THINK_START};

/// Length of the answer where nothing marks one.
const LAST: usize = 64;

/// The tags around the reasoning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tags {
    /// Opens it.
    pub open: String,
    /// Closes it.
    pub close: String,
}

/// Tags that are known by name, in the order in which they are looked for.
const KNOWN: [(&str, &str); 5] = [
    (THINK_START, THINK_END),
    ("[THINK]", "[/THINK]"),
    ("<thinking>", "</thinking>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<reasoning>", "</reasoning>"),
];

impl Tags {
    /// The tags that a text uses: those that it begins with, else the first known ones whose closing tag it holds.
    fn seen(text: &str) -> Self {
        let start = text.trim_start_matches(is_blank);
        let used = KNOWN.iter().find(|(open, _)| start.starts_with(open));
        let (open, close) = used.or_else(|| KNOWN.iter().find(|(_, close)| text.contains(close))).unwrap_or(&KNOWN[0]);
        Self { open: (*open).to_owned(), close: (*close).to_owned() }
    }
}

impl std::str::FromStr for Tags {
    type Err = String;

    /// `OPEN,CLOSE`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(',') {
            Some((open, close))
                if !open.trim().is_empty() && !close.trim().is_empty() && open.trim() != close.trim() =>
            {
                Ok(Self { open: open.trim().to_owned(), close: close.trim().to_owned() })
            }
            _ => Err("expected two different tags, OPEN,CLOSE, such as [THINK],[/THINK]".to_owned()),
        }
    }
}

/// What ends a sequence or a turn in the formats of chats, where a tokenizer spells it out.
const ENDS: [&str; 12] = [
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<|end|>",
    "<|eot|>",
    "<|return|>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    "<|end\u{2581}of\u{2581}sentence|>",
];

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
///
/// # Errors
/// If the prompt is longer than the trace.
pub fn find_spans(tokenizer: &Tokenizer, token_ids: &[u32], n_prompt: usize) -> Result<Split> {
    find_spans_by(tokenizer, token_ids, n_prompt, None)
}

/// As [`find_spans`], with think tags that the caller names; else those that the text uses.
///
/// # Errors
/// As there.
pub fn find_spans_by(tokenizer: &Tokenizer, token_ids: &[u32], n_prompt: usize, tags: Option<&Tags>) -> Result<Split> {
    let Some(ids) = token_ids.get(n_prompt..) else {
        return Err(Error::PromptTooLong { n_prompt, n_tokens: token_ids.len() });
    };
    let generated = tokenizer.byte_offsets(ids)?;
    let text = same_length(&generated.bytes);
    let end = content_end(tokenizer, ids, &generated, &text);
    let text = &text[..end_of(&generated, end)];
    let seen;
    let tags = if let Some(tags) = tags {
        tags
    } else {
        seen = Tags::seen(text);
        &seen
    };
    let start = opening(&generated, text, end, &tags.open);

    let closing: Vec<usize> = text.match_indices(tags.close.as_str()).map(|(at, _)| at).collect();
    let (kind, boundary) = if let Some(&tag) = closing.last() {
        let holder = generated.token_at(tag + tags.close.len() - 1);
        (BoundaryKind::ThinkEnd, skip_space(&generated, text, holder + 1, end))
    } else if let Some(found) = epikv_grader::boxes_start(text) {
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
        n_think_end: closing.len(),
    };
    Ok(Split { spans, generated })
}

/// Bytes as text of the same length: each byte that is no UTF-8 as a question mark.
fn same_length(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

/// White space, and what prints as little.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// Tokens up to the first one that ends a sequence or a turn, or else up to the control tokens at the end. Think tags are
/// content, even where a tokenizer calls them special.
fn content_end(tokenizer: &Tokenizer, ids: &[u32], generated: &TokenText, text: &str) -> usize {
    let ends = ids.iter().position(|id| Some(*id) == tokenizer.eos_id());
    let spelled = ENDS.iter().filter_map(|end| text.find(end)).min().map(|at| {
        let holder = generated.token_at(at);
        // What shares a token with the mark stays.
        holder + usize::from(end_of(generated, holder) < at)
    });
    let end = ends.into_iter().chain(spelled).min().unwrap_or(ids.len());
    let tag = |index: usize| {
        let token = generated.token_bytes(index);
        KNOWN.iter().any(|(open, close)| token == open.as_bytes() || token == close.as_bytes())
    };
    end - (0..end).rev().take_while(|index| tokenizer.is_special(ids[*index]) && !tag(*index)).count()
}

/// First token behind an opening tag and the white space around it; 0 if the text does not begin with one.
fn opening(generated: &TokenText, text: &str, end: usize, open: &str) -> usize {
    let lead = text.len() - text.trim_start_matches(is_blank).len();
    if open.is_empty() || !text[lead..].starts_with(open) {
        return 0;
    }
    skip_space(generated, text, generated.token_at(lead + open.len() - 1) + 1, end)
}

/// The first token from `from` on that holds more than white space.
fn skip_space(generated: &TokenText, text: &str, from: usize, end: usize) -> usize {
    let from = from.min(end);
    let start = end_of(generated, from);
    // A token can end inside a character, which is none of white space then.
    let Some(rest) = text.get(start..) else { return from };
    let Some(seen) = rest.find(|c| !is_blank(c)) else { return end };
    let mut first = generated.token_at(start + seen);
    // Tokens that leave a character unfinished have no bytes of their own.
    while first > from && generated.token_bytes(first - 1).is_empty() {
        first -= 1;
    }
    first
}

/// Bytes of the first `n` tokens.
fn end_of(text: &TokenText, n: usize) -> usize {
    if n == 0 { 0 } else { text.ends[n - 1] }
}

#[cfg(test)]
mod tests;
