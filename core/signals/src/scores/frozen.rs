//! Frozen scores, which are set once, when a token is fed.

use epikv_model::cache::{Pos, RowCache};

/// What a token without a number counts as: lowest.
pub(super) const LOWEST: f32 = f32::NEG_INFINITY;

/// The numbers of all tokens fed so far, by position: the same for all kept sets, or each set's own.
#[derive(Debug, Clone, Default)]
pub struct Frozen {
    /// One list for all sets, or one a set.
    lists: Vec<Vec<f32>>,
}

impl Frozen {
    /// Gives the next tokens their numbers, the same for all kept sets.
    pub fn extend(&mut self, numbers: impl IntoIterator<Item = f32>) {
        self.lists.resize_with(1, Vec::new);
        self.lists[0].extend(numbers);
    }

    /// Gives the next tokens of each of `n_sets` kept sets their numbers, from the set.
    pub fn extend_sets<I: IntoIterator<Item = f32>>(&mut self, n_sets: usize, numbers: impl Fn(usize) -> I) {
        self.lists.resize_with(n_sets.max(1), Vec::new);
        self.lists.iter_mut().enumerate().for_each(|(set, list)| list.extend(numbers(set)));
    }

    /// Tokens that have a number.
    pub fn len(&self) -> usize {
        self.lists.first().map_or(0, Vec::len)
    }

    /// Whether no token has a number.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether all kept sets share one list.
    pub fn is_shared(&self) -> bool {
        self.lists.len() < 2
    }

    /// The number of a token in a kept set; lowest where it has none.
    pub fn at(&self, set: usize, pos: Pos) -> f32 {
        let list = self.lists.get(set).or_else(|| self.lists.first());
        list.and_then(|list| list.get(pos.0 as usize)).copied().unwrap_or(LOWEST)
    }

    /// The numbers of the tokens that each kept set holds, in order of positions.
    pub fn of(&self, cache: &RowCache) -> Vec<Vec<f32>> {
        let sets = cache.sets().iter().enumerate();
        sets.map(|(set, held)| held.positions().map(|pos| self.at(set, pos)).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shared_or_of_a_set() {
        let mut shared = Frozen::default();
        shared.extend([1.0, 2.0]);
        assert_eq!((shared.len(), shared.at(0, Pos(1)), shared.at(7, Pos(1))), (2, 2.0, 2.0));
        assert!(shared.is_shared() && shared.at(0, Pos(2)) == LOWEST);
        let mut own = Frozen::default();
        own.extend_sets(2, |set| [set as f32, 5.0]);
        assert_eq!((own.at(0, Pos(0)), own.at(1, Pos(0)), own.at(1, Pos(1))), (0.0, 1.0, 5.0));
        assert!(!own.is_shared());
    }
}
