//! Positions inside the cache: the `i`-th token held stands at rotary position `i`, however many were evicted.
//!
//! Rotating a rotated key again and again would lose bits at each eviction. So the keys before rotation are stored too,
//! and a key whose place has changed is rotated from its original: what is stored is what a dense run over the same tokens
//! would have stored, bit for bit.
//!
//! Cost: `[H_kv, capacity, D]` more bytes a layer; an eviction rotates the keys after the evicted one.
//!
//! # References
//! `StreamingLLM` (arXiv 2309.17453), section 3.2: positions within the cache rather than those in the text.

use candle_core::{DType, Tensor};

use super::write::write_runs;
use super::{RowCache, Scope, Slot, SlotMap};
use crate::error::Result;
use crate::ops::rotate;
use crate::rope::Rope;

/// The keys before rotation, and by what each was rotated last.
#[derive(Debug, Clone)]
pub(super) struct Compacted {
    /// `[H_kv, capacity, D]` of each layer, by slot.
    originals: Vec<Tensor>,
    /// By kept set and slot. Meaningless where the slot is free.
    rotated_by: Vec<Vec<u32>>,
}

impl Compacted {
    /// For an empty cache.
    pub(super) fn new(cache: &RowCache) -> Result<Self> {
        let zeros = |(k, _): &(Tensor, Tensor)| Ok(k.zeros_like()?);
        Ok(Self {
            originals: cache.layers.iter().map(zeros).collect::<Result<_>>()?,
            rotated_by: cache.maps.iter().map(|map| vec![0; map.capacity()]).collect(),
        })
    }

    pub(super) fn originals(&self) -> &[Tensor] {
        &self.originals
    }

    pub(super) fn bytes(&self) -> usize {
        self.originals.iter().map(|k| 4 * k.elem_count()).sum()
    }

    /// Notes that the newest `n` tokens of each set are rotated by their places, behind a prefix of `n_prefix` tokens.
    pub(super) fn appended(&mut self, maps: &[SlotMap], n: usize, n_prefix: usize) {
        for (map, rotated_by) in maps.iter().zip(&mut self.rotated_by) {
            for (place, &slot) in map.order().iter().enumerate().skip(map.len().saturating_sub(n)) {
                rotated_by[slot as usize] = (n_prefix + place) as u32;
            }
        }
    }

    /// Makes room up to `capacity` slots.
    pub(super) fn grow(&mut self, capacity: usize) -> Result<()> {
        for stored in &mut self.originals {
            let (heads, _, d) = stored.dims3()?;
            let larger = Tensor::zeros((heads, capacity, d), DType::F32, stored.device())?;
            larger.slice_set(stored, 1, 0)?;
            *stored = larger;
        }
        self.rotated_by.iter_mut().for_each(|slots| slots.resize(capacity, 0));
        Ok(())
    }

    /// The same after the tokens of each of `maps` were gathered into its first slots, in order of positions.
    pub(super) fn gathered(self, originals: Vec<Tensor>, maps: &[SlotMap], capacity: usize) -> Self {
        let gather = |(map, slots): (&SlotMap, Vec<u32>)| {
            let mut front: Vec<u32> = map.order().iter().map(|&slot| slots[slot as usize]).collect();
            front.resize(capacity.max(front.len()), 0);
            front
        };
        Self { originals, rotated_by: maps.iter().zip(self.rotated_by).map(gather).collect() }
    }

    /// Slots of a set whose place is not the one they were rotated by, with that place.
    fn moved(&self, set: usize, map: &SlotMap, n_prefix: usize) -> (Vec<Slot>, Vec<u32>) {
        let places = map.order().iter().enumerate().map(|(place, &slot)| (slot as usize, (n_prefix + place) as u32));
        places.filter(|&(slot, place)| self.rotated_by[set][slot] != place).map(|(s, place)| (Slot(s), place)).unzip()
    }
}

impl RowCache {
    /// Keeps keys before rotation, `[T, H_kv, D]`, in reserved slots.
    pub(crate) fn write_originals(&self, layer: usize, k: &Tensor, slots: &[Vec<Slot>]) -> Result<()> {
        let Some(compacted) = &self.compacted else { return Ok(()) };
        let k = k.transpose(0, 1)?.contiguous()?;
        for head in 0..self.n_kv_heads {
            let stored = compacted.originals[layer].narrow(0, head, 1)?;
            write_runs(&stored, &k.narrow(0, head, 1)?, &slots[self.set_index(layer, head)])?;
        }
        Ok(())
    }

    /// Rotates the keys whose places have changed.
    pub(crate) fn renumber(&mut self, rope: &Rope) -> Result<()> {
        let n_prefix = self.prefix_len();
        let Some(mut compacted) = self.compacted.take() else { return Ok(()) };
        let sets: Vec<_> = (0..self.maps.len()).map(|set| compacted.moved(set, &self.maps[set], n_prefix)).collect();
        // One kept set may belong to several heads of a layer; they are rotated together.
        let heads_of_a_set = if self.scope == Scope::PerHead { 1 } else { self.n_kv_heads };
        for layer in 0..self.layers.len() {
            for head in (0..self.n_kv_heads).step_by(heads_of_a_set) {
                let (slots, places) = &sets[self.set_index(layer, head)];
                if slots.is_empty() {
                    continue;
                }
                let (cos, sin) = rope.angles(places.iter().copied());
                let angles = |v: Vec<f32>| Tensor::from_vec(v, (places.len(), rope.n_pairs()), &self.device);
                let index = Tensor::new(slots.iter().map(|slot| slot.0 as u32).collect::<Vec<_>>(), &self.device)?;
                let originals = compacted.originals[layer].narrow(0, head, heads_of_a_set)?.contiguous()?;
                let originals = originals.index_select(&index, 1)?.transpose(0, 1)?.contiguous()?; // [n, heads, D]
                let keys = rotate(&originals, &angles(cos)?, &angles(sin)?)?.transpose(0, 1)?.contiguous()?;
                for own in 0..heads_of_a_set {
                    let stored = self.layers[layer].0.narrow(0, head + own, 1)?;
                    write_runs(&stored, &keys.narrow(0, own, 1)?, slots)?;
                }
            }
        }
        for ((slots, places), rotated_by) in sets.iter().zip(&mut compacted.rotated_by) {
            for (slot, &place) in slots.iter().zip(places) {
                rotated_by[slot.0] = place;
            }
        }
        self.compacted = Some(compacted);
        Ok(())
    }
}
