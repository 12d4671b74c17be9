//! Drafts: tokens that a row is likely to generate. They are read in one pass instead of one pass a token.
//!
//! A draft changes no token: the row keeps only the tokens that it would have chosen in single steps.

use std::sync::Arc;

/// Draft tokens of one pass at most.
const MOST: usize = 256;
/// Draft tokens of the first pass after the row left the draft.
const FEW: usize = 4;
/// Tokens that must be alike before a row is taken to be in the draft again.
const ALIKE: usize = 2;

/// A draft and where its row stands in it.
#[derive(Debug)]
pub(super) struct Draft {
    tokens: Arc<[u32]>,
    /// The token that is expected next; none while the row says something else.
    next: Option<usize>,
    /// Tokens of the next pass at most.
    most: usize,
}

impl Draft {
    pub(super) fn new(tokens: Arc<[u32]>) -> Self {
        Self { tokens, next: Some(0), most: MOST }
    }

    /// Tokens to read after those that the row must read. The last token of a draft is only ever compared: reading it would
    /// tell what comes after the end.
    pub(super) fn ahead(&self, room: usize) -> &[u32] {
        let Some(next) = self.next else { return &[] };
        let left = self.tokens.len().saturating_sub(next + 1);
        &self.tokens[next.min(self.tokens.len())..][..left.min(self.most).min(room)]
    }

    /// Follows the row, of which a pass chose the last `n_chosen` tokens with `n_read` tokens of the draft read.
    pub(super) fn follow(&mut self, generated: &[u32], n_chosen: usize, n_read: usize) {
        let chosen = &generated[generated.len() - n_chosen..];
        let expected = self.next.map_or(&[][..], |next| &self.tokens[next.min(self.tokens.len())..]);
        if n_chosen == n_read + 1 && expected.starts_with(chosen) {
            self.next = self.next.map(|next| next + n_chosen);
            self.most = (2 * self.most).min(MOST);
        } else {
            self.next = self.place_after(generated);
            self.most = FEW;
        }
    }

    /// Behind the place of the draft whose past is most like that of the row; the one nearest to the row's own among equals.
    fn place_after(&self, generated: &[u32]) -> Option<usize> {
        let alike = |end: usize| {
            let pairs = self.tokens[..end].iter().rev().zip(generated.iter().rev());
            pairs.take_while(|(a, b)| a == b).count()
        };
        (1..self.tokens.len())
            .map(|end| (alike(end), end))
            .filter(|(n, _)| *n >= ALIKE)
            .max_by_key(|(n, end)| (*n, std::cmp::Reverse(end.abs_diff(generated.len()))))
            .map(|(_, end)| end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_left_and_found_again() {
        let mut draft = Draft::new([1, 2, 3, 4, 5, 6, 7].into());
        assert_eq!(draft.ahead(100), [1, 2, 3, 4, 5, 6]);
        assert_eq!(draft.ahead(2), [1, 2]);
        draft.follow(&[1, 2, 9], 3, 6);
        assert_eq!(draft.ahead(100), [0_u32; 0]);
        draft.follow(&[1, 2, 9, 4], 1, 0);
        assert_eq!(draft.ahead(100), [0_u32; 0]);
        draft.follow(&[1, 2, 9, 4, 5], 1, 0);
        assert_eq!(draft.ahead(100), [6]);
        draft.follow(&[1, 2, 9, 4, 5, 6, 7], 2, 1);
        assert_eq!(draft.ahead(100), [0_u32; 0], "the draft has ended");
    }

    #[test]
    fn among_equal_places_the_nearest_counts() {
        let mut draft = Draft::new([1, 2, 5, 1, 2, 6, 1, 2, 7, 8].into());
        draft.follow(&[0, 0, 0, 1, 2], 1, 0);
        assert_eq!(draft.ahead(1), [6]);
    }
}
