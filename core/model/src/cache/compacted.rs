//! Positions inside the cache: the `i`-th token held stands at rotary position `i`, however many were evicted.
//!
//! Rotating a rotated key again and again would lose bits at each eviction. So the keys before rotation are stored too,
//! and a key whose place has changed is rotated from its original: what is stored is what a dense run over the same tokens
//! would have stored, bit for bit.
//!
//! Cost: `[capacity, D]` more numbers a layer and KV head; an eviction rotates the keys after the evicted one. Places count
//! in each kept set by itself.
//!
//! # References
//! `StreamingLLM` (arXiv 2309.17453), section 3.2: positions within the cache rather than those in the text.

use super::{RowCache, Slot, SlotMap};
use crate::error::Result;
use crate::rope::Rope;

/// By which place each key was rotated last.
#[derive(Debug, Clone)]
pub(super) struct Compacted {
    /// By kept set and slot. Meaningless where the slot is free.
    rotated_by: Vec<Vec<u32>>,
}

impl Compacted {
    /// For an empty cache.
    pub(super) fn new(maps: &[SlotMap]) -> Self {
        Self { rotated_by: maps.iter().map(|map| vec![0; map.capacity()]).collect() }
    }

    /// Notes that the newest `n` tokens of each set are rotated by their places, behind a prefix of `n_prefix` tokens.
    pub(super) fn appended(&mut self, maps: &[SlotMap], n: usize, n_prefix: usize) {
        for (map, rotated_by) in maps.iter().zip(&mut self.rotated_by) {
            rotated_by.resize(map.capacity(), 0);
            for (place, &slot) in map.order().iter().enumerate().skip(map.len().saturating_sub(n)) {
                rotated_by[slot as usize] = (n_prefix + place) as u32;
            }
        }
    }

    /// Follows the tokens of a set that are gathered into its first slots, in order of positions.
    pub(super) fn gathered(&mut self, set: usize, map: &SlotMap, capacity: usize) {
        let mut front: Vec<u32> = map.order().iter().map(|&slot| self.rotated_by[set][slot as usize]).collect();
        front.resize(capacity, 0);
        self.rotated_by[set] = front;
    }

    /// Slots of a set whose place is not the one they were rotated by, with that place; from now on they are.
    fn moved(&mut self, set: usize, map: &SlotMap, n_prefix: usize) -> (Vec<Slot>, Vec<u32>) {
        let rotated_by = &mut self.rotated_by[set];
        let places = map.order().iter().enumerate().map(|(place, &slot)| (slot as usize, (n_prefix + place) as u32));
        let moved = places.filter(|&(slot, place)| std::mem::replace(&mut rotated_by[slot], place) != place);
        moved.map(|(slot, place)| (Slot(slot), place)).unzip()
    }
}

impl RowCache {
    /// Rotates the keys whose places have changed.
    pub(crate) fn renumber(&mut self, rope: &Rope) -> Result<()> {
        let n_prefix = self.prefix_len();
        let Some(compacted) = &mut self.compacted else { return Ok(()) };
        let sets: Vec<_> = self
            .maps
            .iter()
            .enumerate()
            .map(|(set, map)| {
                let (slots, places) = compacted.moved(set, map, n_prefix);
                (slots, rope.angles(places.into_iter()))
            })
            .collect();
        for (layer, head) in self.heads() {
            let (slots, (cos, sin)) = &sets[self.set_index(layer, head)];
            if !slots.is_empty() {
                self.store.rotate(layer, head, slots, cos, sin)?;
            }
        }
        Ok(())
    }
}
