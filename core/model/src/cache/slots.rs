//! The slot map: the token in each slot.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Absolute index of a token in its sequence, prompt included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos(pub u32);

/// A place in the stored cache. It says nothing about time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub usize);

/// Who shares one kept set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All layers and heads.
    #[default]
    Global,
    /// The heads of a layer.
    PerLayer,
    /// Nobody: each KV head of each layer keeps its own.
    PerHead,
}

impl Scope {
    /// Kept sets of a model.
    pub fn n_sets(self, n_layers: usize, n_kv_heads: usize) -> usize {
        match self {
            Self::Global => 1,
            Self::PerLayer => n_layers,
            Self::PerHead => n_layers * n_kv_heads,
        }
    }

    /// The set that a KV head of a layer uses: one, one a layer, or one a layer and KV head (layer-major).
    pub fn set_index(self, n_kv_heads: usize, layer: usize, head: usize) -> usize {
        match self {
            Self::Global => 0,
            Self::PerLayer => layer,
            Self::PerHead => layer * n_kv_heads + head,
        }
    }
}

/// The occupied and the free slots of one kept set.
#[derive(Debug, Clone, Default)]
pub struct SlotMap {
    /// Position in each slot, `None` where free.
    held: Vec<Option<Pos>>,
    /// The group of the token in each slot, by which the store knows its precision. Meaningless where the slot is free.
    groups: Vec<u32>,
    /// Occupied slots, in order of their positions.
    order: Vec<u32>,
    /// Free slots, lowest first.
    free: BinaryHeap<Reverse<u32>>,
}

impl SlotMap {
    /// `capacity` free slots.
    pub fn new(capacity: usize) -> Self {
        let mut map = Self::default();
        map.grow(capacity);
        map
    }

    /// Adds free slots up to `capacity`.
    pub(crate) fn grow(&mut self, capacity: usize) {
        self.free.extend((self.held.len()..capacity).map(|s| Reverse(s as u32)));
        self.held.resize(capacity.max(self.held.len()), None);
        self.groups.resize(self.held.len(), 0);
    }

    /// Slots, free or not.
    pub fn capacity(&self) -> usize {
        self.held.len()
    }

    /// Free slots.
    pub fn n_free(&self) -> usize {
        self.held.len() - self.order.len()
    }

    /// Occupied slots.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Occupied slots in order of their positions.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The stored position of a place in the order of positions.
    pub fn nth(&self, place: usize) -> Option<Pos> {
        self.order.get(place).and_then(|&s| self.held[s as usize])
    }

    /// Stored positions, ascending.
    pub fn positions(&self) -> impl DoubleEndedIterator<Item = Pos> + '_ {
        self.order.iter().filter_map(|&s| self.held[s as usize])
    }

    /// The position in a slot.
    pub fn at(&self, slot: Slot) -> Option<Pos> {
        self.held.get(slot.0).copied().flatten()
    }

    /// Latest stored position.
    pub fn last(&self) -> Option<Pos> {
        self.order.last().and_then(|&s| self.held[s as usize])
    }

    /// Takes the lowest free slot for a position later than all stored ones, in a group; `None` when full.
    ///
    /// # Panics
    /// In debug builds, if the position is not later.
    pub(crate) fn take(&mut self, pos: Pos, group: u32) -> Option<Slot> {
        debug_assert!(self.last().is_none_or(|last| last < pos), "positions must ascend");
        let Reverse(slot) = self.free.pop()?;
        self.held[slot as usize] = Some(pos);
        self.groups[slot as usize] = group;
        self.order.push(slot);
        Some(Slot(slot as usize))
    }

    /// Frees the slots of the positions for which `keep` is false; returns how many. Moves no data.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(Pos) -> bool) -> usize {
        let before = self.order.len();
        let (held, free) = (&mut self.held, &mut self.free);
        self.order.retain(|&slot| {
            let kept = held[slot as usize].is_some_and(&mut keep);
            if !kept {
                held[slot as usize] = None;
                free.push(Reverse(slot));
            }
            kept
        });
        before - self.order.len()
    }

    /// Frees the slot of one position; false if it is not stored. Moves no data.
    pub(crate) fn remove(&mut self, pos: Pos) -> bool {
        let Some(at) = self.place_of(pos) else { return false };
        let slot = self.order.remove(at);
        self.held[slot as usize] = None;
        self.free.push(Reverse(slot));
        true
    }

    /// The place of a position in the order of positions; `None` if it is not stored. `O(log n)` comparisons.
    pub fn place_of(&self, pos: Pos) -> Option<usize> {
        self.order.binary_search_by(|&slot| self.held[slot as usize].cmp(&Some(pos))).ok()
    }

    /// The group of a position, if it is stored.
    pub(crate) fn group_of(&self, pos: Pos) -> Option<u32> {
        self.place_of(pos).map(|place| self.groups[self.order[place] as usize])
    }

    /// Puts the positions for which `of` is true into a group; returns their slots.
    pub(crate) fn regroup(&mut self, group: u32, of: impl Fn(Pos) -> bool) -> Vec<Slot> {
        let is_meant = |slot: &u32| self.held[*slot as usize].is_some_and(&of);
        let slots: Vec<Slot> = self.order.iter().copied().filter(is_meant).map(|slot| Slot(slot as usize)).collect();
        for slot in &slots {
            self.groups[slot.0] = group;
        }
        slots
    }

    /// Renumbers the occupied slots `0..len` in order of positions, with `capacity` slots in all.
    pub(crate) fn compact(&mut self, capacity: usize) {
        let of = |&slot: &u32| Some((self.held[slot as usize]?, self.groups[slot as usize]));
        let stored: Vec<(Pos, u32)> = self.order.iter().filter_map(of).collect();
        *self = Self::new(capacity.max(stored.len()));
        for (pos, group) in stored {
            self.take(pos, group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_slots_are_used_again_and_order_is_by_position() {
        let mut map = SlotMap::new(3);
        for p in 0..3 {
            assert_eq!(map.take(Pos(p), 0), Some(Slot(p as usize)));
        }
        assert_eq!(map.take(Pos(3), 0), None);
        assert_eq!(map.retain(|p| p != Pos(1)), 1);
        assert_eq!(map.take(Pos(7), 0), Some(Slot(1)));
        assert_eq!(map.order(), [0, 2, 1]);
        assert_eq!(map.positions().map(|p| p.0).collect::<Vec<_>>(), [0, 2, 7]);
        assert_eq!(map.last(), Some(Pos(7)));
    }

    #[test]
    fn one_position_can_be_removed() {
        let mut map = SlotMap::new(4);
        (0..4).for_each(|p| {
            map.take(Pos(2 * p), 0);
        });
        assert!(map.remove(Pos(2)) && !map.remove(Pos(2)) && !map.remove(Pos(3)));
        assert_eq!(map.positions().map(|p| p.0).collect::<Vec<_>>(), [0, 4, 6]);
        assert_eq!((map.nth(1), map.nth(3)), (Some(Pos(4)), None));
        assert_eq!(map.take(Pos(9), 0), Some(Slot(1)));
    }

    #[test]
    fn compacting_keeps_the_positions() {
        let mut map = SlotMap::new(5);
        (0..5).for_each(|p| {
            map.take(Pos(p), 0);
        });
        map.retain(|p| p.0 % 2 == 0);
        map.compact(4);
        assert_eq!((map.order(), map.capacity()), (&[0, 1, 2][..], 4));
        assert_eq!(map.positions().map(|p| p.0).collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(map.take(Pos(9), 0), Some(Slot(3)));
    }
}
