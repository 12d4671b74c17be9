//! Windows that follow the text: one a sentence, a step or a line of the reasoning.
//!
//! | | ends after |
//! | --- | --- |
//! | sentence | `.`, `?` or `!` before white space, or a line |
//! | step | an empty line |
//! | line | a line feed |
//!
//! A token belongs to the span in which its first byte lies, and white space to the span before it, so that spans cover the
//! reasoning once and no token is in two.

use std::ops::Range;

use epikv_model::tokenizer::TokenText;

epikv_words::words! {
    /// What a window is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
    #[serde(into = "&'static str")]
    pub enum By {
        /// A fixed number of tokens, at every stride.
        #[default]
        Window = "window",
        /// A sentence.
        Sentence = "sentence",
        /// A paragraph.
        Step = "step",
        /// A line.
        Line = "line",
    }
}

/// The spans of tokens `from..boundary`, of which `text` holds token `from` first.
pub(crate) fn spans(by: By, text: &TokenText, from: usize, boundary: usize) -> Vec<Range<usize>> {
    let bytes = &text.bytes[..];
    let ends_here = |at: usize| match by {
        By::Window => false,
        By::Line => bytes[at] == b'\n',
        By::Step => bytes[at] == b'\n' && at > 0 && bytes[at - 1] == b'\n',
        By::Sentence => {
            bytes[at] == b'\n'
                || (matches!(bytes[at], b'.' | b'?' | b'!') && bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace))
        }
    };
    let mut starts = vec![from];
    // The token that the next span may begin at: it moves on with the text.
    let mut token = 0;
    let mut at = 0;
    while at < bytes.len() {
        if ends_here(at) {
            let next = (at + 1..bytes.len()).find(|&i| !bytes[i].is_ascii_whitespace()).unwrap_or(bytes.len());
            // The token that holds the next word, unless that word began inside a token before it.
            while token < boundary - from && first_byte(text, token).is_none_or(|byte| byte <= at) {
                token += 1;
            }
            let start = from + token;
            if start < boundary && next < bytes.len() && starts.last().is_none_or(|last| *last < start) {
                starts.push(start);
            }
            at = next;
        } else {
            at += 1;
        }
    }
    let ends = starts.iter().skip(1).copied().chain([boundary]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).filter(|span| !span.is_empty()).collect()
}

/// The first byte of a token that is no white space.
fn first_byte(text: &TokenText, token: usize) -> Option<usize> {
    text.range(token).find(|&i| !text.bytes[i].is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each part is one token.
    fn text(parts: &[&str]) -> TokenText {
        let mut text = TokenText::default();
        for part in parts {
            text.bytes.extend(part.as_bytes());
            text.ends.push(text.bytes.len());
        }
        text
    }

    #[test]
    fn sentences_steps_and_lines() {
        let parts = ["So", " x", " is", " 3.5", ".", " Wait", "!", "\n\n", "Then", " y", "\n", "is 4", "."];
        let text = text(&parts);
        let of = |by| spans(by, &text, 10, 10 + parts.len());
        assert_eq!(of(By::Sentence), [10..15, 15..18, 18..21, 21..23]);
        assert_eq!(of(By::Step), [10..18, 18..23]);
        assert_eq!(of(By::Line), [10..18, 18..21, 21..23]);
    }

    #[test]
    fn spans_cover_everything_once() {
        for parts in [&["a. b", ". c.", " ", "\n", "d"][..], &["\n\n"], &["", "x"], &["a.", "", " b"]] {
            let text = text(parts);
            for by in [By::Sentence, By::Step, By::Line] {
                let found = spans(by, &text, 3, 3 + parts.len());
                assert_eq!((found[0].start, found[found.len() - 1].end), (3, 3 + parts.len()), "{parts:?} {by:?}");
                assert!(found.windows(2).all(|w| w[0].end == w[1].start), "{parts:?} {found:?}");
            }
        }
    }
}
