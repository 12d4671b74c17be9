//! New keys and values into the slots that were taken for them.

use candle_core::Tensor;

use super::store::Part;
use super::{Precision, RowCache, Slot};
use crate::error::Result;

impl RowCache {
    /// Stores one part of the new tokens of a layer, `[T, H_kv, D]`, in the slots reserved for them, by kept set: a cache on
    /// the host.
    pub(crate) fn write_slice(&mut self, part: Part, layer: usize, new: &[f32], slots: &[Vec<Slot>]) -> Result<()> {
        let (heads, d, precision) = (self.n_kv_heads(), self.store.head_dim(), self.new_precision(part));
        for head in 0..heads {
            let own = &slots[self.set_index(layer, head)];
            self.store.write_host(part, (layer, head), own, precision, |token| {
                let from = (token * heads + head) * d;
                &new[from..from + d]
            })?;
        }
        Ok(())
    }

    /// The same for a cache in tensors.
    pub(crate) fn write_tensor(&mut self, part: Part, layer: usize, new: &Tensor, slots: &[Vec<Slot>]) -> Result<()> {
        let precision = self.new_precision(part);
        for head in 0..self.n_kv_heads() {
            let own = &slots[self.set_index(layer, head)];
            let new = new.narrow(1, head, 1)?.squeeze(1)?; // [T, D]
            self.store.write_tensor(part, (layer, head), own, precision, &new)?;
        }
        Ok(())
    }

    /// Keys before rotation are kept as they are: other keys are made from them.
    fn new_precision(&self, part: Part) -> Precision {
        if part == Part::Originals { Precision::F32 } else { self.store.precision(self.new_group) }
    }
}
