//! New keys and values into the slots that were taken for them.

use candle_core::{CpuStorage, InplaceOp1, Layout, Tensor};

use super::{Precision, RowCache, Scope, Slot};
use crate::error::Result;
use crate::ops::{kernels_apply, with_f32};

impl RowCache {
    /// Writes new keys and values of a layer, `[T, H_kv, D]`, into reserved slots.
    pub(crate) fn write(&self, layer: usize, k: &Tensor, v: &Tensor, slots: &[Vec<Slot>]) -> Result<()> {
        if kernels_apply(k) && kernels_apply(v) {
            return with_f32(k, |k| with_f32(v, |v| self.write_slices(layer, k, v, slots)))??;
        }
        let (stored_k, stored_v) = &self.layers[layer];
        for (stored, new) in [(stored_k, k), (stored_v, v)] {
            let new = new.transpose(0, 1)?.contiguous()?;
            match self.scope {
                Scope::Global | Scope::PerLayer => write_runs(stored, &new, &slots[self.set_index(layer, 0)])?,
                Scope::PerHead => {
                    for head in 0..self.n_kv_heads {
                        let (stored, new) = (stored.narrow(0, head, 1)?, new.narrow(0, head, 1)?);
                        write_runs(&stored, &new, &slots[self.set_index(layer, head)])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The same from plain slices, for a cache on the CPU.
    pub(crate) fn write_slices(&self, layer: usize, k: &[f32], v: &[f32], slots: &[Vec<Slot>]) -> Result<()> {
        let (stored_k, stored_v) = &self.layers[layer];
        for (stored, new) in [(stored_k, k), (stored_v, v)] {
            let set = |head| self.set_index(layer, head);
            stored.inplace_op1(&WriteSlots { new, slots, layer, precision: self.precision, set })?;
        }
        Ok(())
    }
}

/// Copies `new` `[T, H, D]` into slots of `[H, capacity, D]` on the CPU, in one pass.
struct WriteSlots<'a, F> {
    new: &'a [f32],
    /// Slots of the `T` tokens, by kept set.
    slots: &'a [Vec<Slot>],
    layer: usize,
    precision: Precision,
    /// The kept set of a head.
    set: F,
}

impl<F: Fn(usize) -> usize> InplaceOp1 for WriteSlots<'_, F> {
    fn name(&self) -> &'static str {
        "write-slots"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        let (heads, capacity, d) = layout.shape().dims3()?;
        let CpuStorage::F32(all) = storage else { candle_core::bail!("write-slots: expected f32") };
        for head in 0..heads {
            for (token, slot) in self.slots[(self.set)(head)].iter().enumerate() {
                let (from, to) = ((token * heads + head) * d, layout.start_offset() + (head * capacity + slot.0) * d);
                self.precision.store(&self.new[from..from + d], self.layer, head, &mut all[to..to + d]);
            }
        }
        Ok(())
    }
}

/// Copies `new` `[H, T, D]` into `stored` `[H, capacity, D]`, one call for each run of neighbouring slots.
pub(super) fn write_runs(stored: &Tensor, new: &Tensor, slots: &[Slot]) -> Result<()> {
    let mut from = 0;
    while from < slots.len() {
        let run = (from..slots.len()).take_while(|&i| slots[i].0 == slots[from].0 + (i - from)).count();
        stored.slice_set(&new.narrow(1, from, run)?.contiguous()?, 1, slots[from].0)?;
        from += run;
    }
    Ok(())
}
