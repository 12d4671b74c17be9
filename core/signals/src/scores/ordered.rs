//! Live scores: one number for each token of a kept set, which changes from step to step.

use epikv_model::cache::{Pos, SlotMap};

/// The numbers of one kept set, in order of positions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ordered {
    positions: Vec<Pos>,
    values: Vec<f32>,
}

impl Ordered {
    /// Takes in the tokens that the set holds and that have no number yet.
    pub(crate) fn grow(&mut self, set: &SlotMap, value: f32) {
        self.positions.extend((self.positions.len()..set.len()).filter_map(|place| set.nth(place)));
        self.values.resize(self.positions.len(), value);
    }

    /// The positions that have a number, ascending.
    pub(crate) fn positions(&self) -> &[Pos] {
        &self.positions
    }

    /// The numbers, in order of positions.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }

    /// The same, to be changed.
    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Forgets the token at a position.
    pub(crate) fn remove(&mut self, pos: Pos) {
        if let Ok(place) = self.positions.binary_search(&pos) {
            self.positions.remove(place);
            self.values.remove(place);
        }
    }
}
