//! New keys and values into the slots that were taken for them.

use candle_core::Tensor;

use super::store::Part;
use super::{Precision, RowCache, Slot};
use crate::error::Result;
use crate::ops::with_f32;

impl RowCache {
    /// Writes new keys and values of a layer, `[T, H_kv, D]`, into reserved slots.
    pub(crate) fn write(&mut self, layer: usize, k: &Tensor, v: &Tensor, slots: &[Vec<Slot>]) -> Result<()> {
        self.write_part(Part::Keys, layer, k, self.precision, slots)?;
        self.write_part(Part::Values, layer, v, self.precision, slots)
    }

    /// The same from plain slices, for a cache on the host.
    pub(crate) fn write_slices(&mut self, layer: usize, k: &[f32], v: &[f32], slots: &[Vec<Slot>]) -> Result<()> {
        self.write_slice(Part::Keys, layer, k, self.precision, slots)?;
        self.write_slice(Part::Values, layer, v, self.precision, slots)
    }

    /// Keeps keys before rotation, `[T, H_kv, D]`, in reserved slots.
    pub(crate) fn write_originals(&mut self, layer: usize, k: &Tensor, slots: &[Vec<Slot>]) -> Result<()> {
        self.write_part(Part::Originals, layer, k, Precision::F32, slots)
    }

    fn write_part(
        &mut self,
        part: Part,
        layer: usize,
        new: &Tensor,
        precision: Precision,
        slots: &[Vec<Slot>],
    ) -> Result<()> {
        if self.store.is_on_host() {
            return with_f32(new, |new| self.write_slice(part, layer, new, precision, slots))?;
        }
        for head in 0..self.n_kv_heads() {
            let own = &slots[self.set_index(layer, head)];
            let new = new.narrow(1, head, 1)?.squeeze(1)?; // [T, D]
            self.store.write_tensor(part, (layer, head), own, precision, &new)?;
        }
        Ok(())
    }

    fn write_slice(
        &mut self,
        part: Part,
        layer: usize,
        new: &[f32],
        precision: Precision,
        slots: &[Vec<Slot>],
    ) -> Result<()> {
        let (heads, d) = (self.n_kv_heads(), self.store.head_dim());
        for head in 0..heads {
            let own = &slots[self.set_index(layer, head)];
            self.store.write_host(part, (layer, head), own, precision, |token| {
                let from = (token * heads + head) * d;
                &new[from..from + d]
            })?;
        }
        Ok(())
    }
}
