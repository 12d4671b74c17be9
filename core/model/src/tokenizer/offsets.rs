//! Which bytes of the decoded text each token wrote.
//!
//! A span rule looks for `</think>` or `\boxed{` in the text and needs the token that holds a given byte. Characters
//! would not do: byte-level tokens split characters, and a lossy decode changes lengths.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::Result;

/// Tokens kept back at most while a character is incomplete; a longer run is not a character.
const LONGEST_RUN: usize = 16;

/// The bytes of a decoded token sequence and where each token ends in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenText {
    /// The text; not always valid UTF-8, since a sequence may end inside a character.
    pub bytes: Vec<u8>,
    /// End of token `i` in `bytes`; ascending, and equal to its predecessor for a token that wrote nothing.
    pub ends: Vec<usize>,
}

impl TokenText {
    /// The text, with `U+FFFD` for bytes that are no character.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// The bytes of token `index`.
    pub fn range(&self, index: usize) -> Range<usize> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        start..self.ends[index]
    }

    /// What token `index` wrote.
    pub fn token_bytes(&self, index: usize) -> &[u8] {
        &self.bytes[self.range(index)]
    }

    /// The token that holds byte `offset`; the number of tokens if the text is not that long.
    pub fn token_at(&self, offset: usize) -> usize {
        self.ends.partition_point(|&end| end <= offset)
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }
}

/// Offsets through any decoder, given only `decode`: each token's text is what it adds to the text of the tokens just
/// before it, so a decoder that joins with spaces or strips the first one is followed exactly. Costs a few decodes of
/// short windows a token.
///
/// A token that leaves a character unfinished gets no bytes; the token that finishes it gets them all.
pub(super) fn incremental(ids: &[u32], decode: impl Fn(&[u32]) -> Result<String>) -> Result<TokenText> {
    let bytes = decode(ids)?.into_bytes();
    let mut ends = Vec::with_capacity(ids.len());
    // Tokens `anchor..read` are the context whose text is known, `read..=i` the ones not accounted for yet.
    let (mut anchor, mut read, mut written) = (0, 0, 0);
    let mut context = String::new();
    for index in 0..ids.len() {
        let window = decode(&ids[anchor..=index])?;
        let unfinished = window.len() <= context.len() || window.ends_with(char::REPLACEMENT_CHARACTER);
        if unfinished && index + 1 - read < LONGEST_RUN {
            ends.push(written);
            continue;
        }
        written += window.len().saturating_sub(context.len());
        ends.push(written);
        anchor = read;
        read = index + 1;
        context = decode(&ids[anchor..read])?;
    }
    let finished = read == ids.len();
    if written > bytes.len() || (finished && written != bytes.len()) {
        return by_prefix(ids, bytes, decode);
    }
    if let Some(last) = ends.last_mut() {
        *last = bytes.len();
    }
    Ok(TokenText { bytes, ends })
}

/// The plain definition, for decoders whose text is not the sum of its parts. Quadratic.
fn by_prefix(ids: &[u32], bytes: Vec<u8>, decode: impl Fn(&[u32]) -> Result<String>) -> Result<TokenText> {
    let mut ends = Vec::with_capacity(ids.len());
    let mut reached = 0;
    for n in 1..ids.len() {
        reached = decode(&ids[..n])?.len().clamp(reached, bytes.len());
        ends.push(reached);
    }
    if !ids.is_empty() {
        ends.push(bytes.len());
    }
    Ok(TokenText { bytes, ends })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined() -> TokenText {
        incremental(&[7, 12, 3], |ids| Ok(ids.iter().map(|id| format!("t{id}")).collect::<Vec<_>>().join(" "))).unwrap()
    }

    #[test]
    fn a_joining_space_belongs_to_the_later_token() {
        let text = joined();
        assert_eq!(text.text(), "t7 t12 t3");
        assert_eq!(text.ends, [2, 6, 9]);
        assert_eq!(text.token_bytes(1), b" t12");
    }

    #[test]
    fn a_stripped_first_space_is_followed() {
        let strip = |ids: &[u32]| {
            let words: Vec<_> = ids.iter().map(|id| format!(" {id}")).collect();
            Ok(words.concat().trim_start().to_owned())
        };
        let text = incremental(&[1, 22, 3], strip).unwrap();
        assert_eq!(text.ends, [1, 4, 6]);
    }

    #[test]
    fn the_token_that_finishes_a_character_gets_it() {
        let bytes =
            |ids: &[u32]| Ok(String::from_utf8_lossy(&ids.iter().map(|&id| id as u8).collect::<Vec<_>>()).into_owned());
        let text = incremental(&[0x61, 0xE2, 0x82, 0xAC, 0x62], bytes).unwrap();
        assert_eq!(text.text(), "a€b");
        assert_eq!(text.ends, [1, 1, 1, 4, 5]);
    }

    #[test]
    fn a_decoder_that_is_not_a_sum_falls_back_to_prefixes() {
        // Pairs of equal tokens vanish: no window can know.
        let odd = |ids: &[u32]| Ok(if ids.len().is_multiple_of(2) { String::new() } else { "x".to_owned() });
        let text = incremental(&[1, 1, 1], odd).unwrap();
        assert_eq!(text.ends.last(), Some(&text.bytes.len()));
        assert!(text.ends.is_sorted());
    }

    #[test]
    fn bytes_find_their_token() {
        let text = joined();
        assert_eq!((text.token_at(0), text.token_at(1), text.token_at(2)), (0, 0, 1));
        assert_eq!(text.token_at(9), 3);
    }
}
