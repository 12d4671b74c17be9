//! The content of a cache, head by head, on the host. Scores of held tokens are computed from it.

use super::{RowCache, SlotMap};
use crate::error::Result;

/// Keys and values of a cache on the host, and which token lies where. Of a shared prefix it shows nothing.
#[derive(Debug)]
pub struct CacheView<'a> {
    cache: &'a RowCache,
    /// Keys and values by layer and KV head, where they had to be copied from a device.
    copied: Vec<(Vec<f32>, Vec<f32>)>,
}

/// What one KV head of a layer holds.
#[derive(Debug, Clone, Copy)]
pub struct HeadView<'a> {
    /// Keys after rotation, `[capacity, D]` by slot.
    pub keys: &'a [f32],
    /// Values, likewise.
    pub values: &'a [f32],
    /// The occupied slots in order of their positions, `[n]`.
    pub slots: &'a [u32],
    /// `D`.
    pub head_dim: usize,
}

impl RowCache {
    /// The own keys and values on the host: borrowed where they lie there, copied from a device otherwise, which
    /// [`Decoder::bytes_to_host`](crate::decoder::Decoder::bytes_to_host) counts.
    ///
    /// # Errors
    /// If the device fails.
    pub fn view(&self) -> Result<CacheView<'_>> {
        let copied = if self.store.is_on_host() {
            Vec::new()
        } else {
            self.heads().map(|(layer, head)| self.store.copied(layer, head)).collect::<Result<_>>()?
        };
        Ok(CacheView { cache: self, copied })
    }
}

impl<'a> CacheView<'a> {
    /// The cache: its kept sets, scope and sizes.
    pub fn cache(&self) -> &'a RowCache {
        self.cache
    }

    /// The kept sets, in the order of [`RowCache::sets`].
    pub fn sets(&self) -> &'a [SlotMap] {
        self.cache.sets()
    }

    /// What a KV head of a layer holds.
    ///
    /// # Panics
    /// If the model has no such layer or head.
    pub fn head(&self, layer: usize, head: usize) -> HeadView<'_> {
        let (keys, values) = self.cache.store.host(layer, head).unwrap_or_else(|| {
            let (keys, values) = &self.copied[layer * self.cache.n_kv_heads() + head];
            (keys, values)
        });
        let slots = self.cache.set_of(layer, head).order();
        HeadView { keys, values, slots, head_dim: self.cache.store.head_dim() }
    }
}

impl<'a> HeadView<'a> {
    /// Tokens held.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The key of the token at a place in the order of positions, `[D]`.
    ///
    /// # Panics
    /// If fewer tokens are held; so does [`HeadView::value`].
    pub fn key(&self, place: usize) -> &'a [f32] {
        self.of(self.keys, place)
    }

    /// The value of the token at a place in the order of positions, `[D]`.
    pub fn value(&self, place: usize) -> &'a [f32] {
        self.of(self.values, place)
    }

    fn of(&self, vectors: &'a [f32], place: usize) -> &'a [f32] {
        let from = self.slots[place] as usize * self.head_dim;
        &vectors[from..from + self.head_dim]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_the_slots() {
        let held = HeadView { keys: &[1.0, 2.0, 3.0, 4.0], values: &[5.0, 6.0, 7.0, 8.0], slots: &[1, 0], head_dim: 2 };
        assert_eq!((held.len(), held.key(0), held.value(1)), (2, &[3.0, 4.0][..], &[5.0, 6.0][..]));
    }
}
