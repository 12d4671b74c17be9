//! Keys and values of one sequence: a shared read-only prefix, if any, and slots of its own.

mod compacted;
mod precision;
mod prefix;
mod slots;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};

use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::ops::with_f32;

use compacted::Compacted;
pub use precision::Precision;
pub use prefix::Prefix;
pub use slots::{Pos, Scope, Slot, SlotMap};

/// What happens when all slots are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// An error: the resident size is fixed, as under a budget.
    Fixed(usize),
    /// Storage doubles.
    Growing,
}

/// By which number a token is rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rotation {
    /// By its position. Stored keys are never touched.
    #[default]
    Position,
    /// By the number of tokens held when it comes, so that evictions turn it back; stored keys are never touched. For
    /// reproducing published runs only.
    Retained,
    /// By its place among the tokens held: after an eviction the later keys are rotated anew, each time from the one
    /// original that is stored beside them in f32.
    Compacted,
}

/// Slots that a growing cache starts with.
const FIRST_CAPACITY: usize = 64;

/// The cache of one row of the batch.
///
/// Keys are stored after rotation. Slots are storage; order is by position.
#[derive(Debug, Clone)]
pub struct RowCache {
    n_kv_heads: usize,
    head_dim: usize,
    scope: Scope,
    capacity: Capacity,
    rotation: Rotation,
    precision: Precision,
    device: Device,
    prefix: Option<(Arc<Prefix>, usize)>,
    /// One map, one a layer, or one a layer and KV head, by scope.
    maps: Vec<SlotMap>,
    /// `[H_kv, capacity, D]` keys and values of each layer.
    layers: Vec<(Tensor, Tensor)>,
    /// Keys before rotation, for [`Rotation::Compacted`] only.
    compacted: Option<Compacted>,
    /// Latest position ever appended, evicted or not.
    last: Option<Pos>,
    /// Residual of the last token at tapped layers, for step differences across calls.
    pub(crate) previous: BTreeMap<usize, Tensor>,
}

impl RowCache {
    /// An empty cache.
    pub fn new(config: &ModelConfig, device: &Device, scope: Scope, capacity: Capacity) -> Result<Self> {
        let slots = match capacity {
            Capacity::Fixed(n) => n,
            Capacity::Growing => FIRST_CAPACITY,
        };
        let empty = || Tensor::zeros((config.n_kv_heads, slots, config.head_dim), DType::F32, device);
        let layers = (0..config.n_layers).map(|_| Ok((empty()?, empty()?))).collect::<Result<Vec<_>>>()?;
        let n_maps = match scope {
            Scope::Global => 1,
            Scope::PerLayer => config.n_layers,
            Scope::PerHead => config.n_layers * config.n_kv_heads,
        };
        Ok(Self {
            n_kv_heads: config.n_kv_heads,
            head_dim: config.head_dim,
            scope,
            capacity,
            rotation: Rotation::Position,
            precision: Precision::F32,
            device: device.clone(),
            prefix: None,
            maps: vec![SlotMap::new(slots); n_maps],
            layers,
            compacted: None,
            last: None,
            previous: BTreeMap::new(),
        })
    }

    /// An empty cache behind the first `n_tokens` of a shared prefix.
    pub fn with_prefix(mut self, prefix: Arc<Prefix>, n_tokens: usize) -> Result<Self> {
        if n_tokens > prefix.len() || self.last.is_some() {
            return Err(Error::Request {
                what: "shared prefix",
                expected: format!("at most its {} tokens, before anything is appended", prefix.len()),
                got: format!("{n_tokens} tokens, last position {:?}", self.last),
            });
        }
        self.last = n_tokens.checked_sub(1).map(|i| prefix.positions()[i]);
        self.prefix = (n_tokens > 0).then_some((prefix, n_tokens));
        Ok(self)
    }

    /// The same empty cache with another rotation.
    ///
    /// # Errors
    /// If something was appended before.
    pub fn with_rotation(self, rotation: Rotation) -> Result<Self> {
        if self.maps.iter().any(|map| !map.is_empty()) {
            return Err(Error::Request {
                what: "rotation of a cache",
                expected: "to be chosen before anything is appended".to_owned(),
                got: format!("{} tokens", self.len(0)),
            });
        }
        let compacted = (rotation == Rotation::Compacted).then(|| Compacted::new(&self)).transpose()?;
        Ok(Self { rotation, compacted, ..self })
    }

    /// The same empty cache with numbers of another precision.
    ///
    /// # Errors
    /// If something was appended before, if the cache is not on the CPU, or if keys are to be rotated anew: they are then
    /// made from originals in f32.
    pub fn with_precision(self, precision: Precision) -> Result<Self> {
        let exact = precision == Precision::F32;
        if !exact && (!self.is_empty() || !self.device.is_cpu() || self.compacted.is_some()) {
            return Err(Error::Request {
                what: "precision of a cache",
                expected: "an empty cache on the CPU without positions inside the cache".to_owned(),
                got: format!("{precision}, {} tokens, {:?}, {:?}", self.len(0), self.device.location(), self.rotation),
            });
        }
        Ok(Self { precision, ..self })
    }

    /// The number that the next token is rotated by, where that is not its position.
    pub(crate) fn next_rotation(&self) -> Option<u32> {
        (self.rotation != Rotation::Position).then(|| self.len(0) as u32)
    }

    /// Whether keys before rotation must be stored too.
    pub(crate) fn wants_originals(&self) -> bool {
        self.compacted.is_some()
    }

    /// Tokens of the shared prefix and of the own slots that map `set` holds.
    pub fn len(&self, set: usize) -> usize {
        self.prefix_len() + self.maps[set].len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.prefix_len() == 0 && self.maps[0].is_empty()
    }

    /// Tokens of the shared prefix in use.
    pub fn prefix_len(&self) -> usize {
        self.prefix.as_ref().map_or(0, |(_, n)| *n)
    }

    /// The shared prefix, with the number of tokens in use.
    pub(crate) fn prefix(&self) -> Option<(&Prefix, usize)> {
        self.prefix.as_ref().map(|(p, n)| (&**p, *n))
    }

    /// Latest position appended so far, evicted or not.
    pub fn last(&self) -> Option<Pos> {
        self.last
    }

    /// By which number a token is rotated.
    pub fn rotation(&self) -> Rotation {
        self.rotation
    }

    /// Who shares a kept set.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The kept sets of the own slots: one, one a layer, or one a layer and KV head (layer-major).
    pub fn sets(&self) -> &[SlotMap] {
        &self.maps
    }

    /// The kept set that a KV head of a layer uses.
    pub fn set_of(&self, layer: usize, head: usize) -> &SlotMap {
        &self.maps[self.set_index(layer, head)]
    }

    fn set_index(&self, layer: usize, head: usize) -> usize {
        match self.scope {
            Scope::Global => 0,
            Scope::PerLayer => layer,
            Scope::PerHead => layer * self.n_kv_heads + head,
        }
    }

    /// Own keys and values of a layer, `[H_kv, capacity, D]` by slot, keys after rotation.
    pub fn layer(&self, layer: usize) -> (&Tensor, &Tensor) {
        let (k, v) = &self.layers[layer];
        (k, v)
    }

    /// Layers.
    pub fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// Lends the own keys of a layer after rotation, `[H_kv, capacity, D]` by slot.
    ///
    /// # Errors
    /// If they are not on the CPU.
    pub fn keys<R>(&self, layer: usize, f: impl FnOnce(&[f32]) -> R) -> Result<R> {
        with_f32(&self.layers[layer].0, f)
    }

    /// Lends the own values of a layer, `[H_kv, capacity, D]` by slot.
    ///
    /// # Errors
    /// If they are not on the CPU.
    pub fn values<R>(&self, layer: usize, f: impl FnOnce(&[f32]) -> R) -> Result<R> {
        with_f32(&self.layers[layer].1, f)
    }

    /// Bytes of the own storage, free slots and originals included; a shared prefix is counted by its owner.
    pub fn bytes(&self) -> usize {
        let stored: usize = self.layers.iter().map(|(k, v)| 4 * (k.elem_count() + v.elem_count())).sum();
        stored + self.compacted.as_ref().map_or(0, Compacted::bytes)
    }

    /// Marks slots free, in one kept set, where `keep` is false; returns how many. Moves no data.
    ///
    /// A shared prefix is never touched.
    pub fn evict(&mut self, set: usize, keep: impl FnMut(Pos) -> bool) -> usize {
        self.maps[set].retain(keep)
    }

    /// Marks the slot of one position free, in one kept set; false if the set does not hold it. `O(log n)` comparisons.
    pub fn remove(&mut self, set: usize, pos: Pos) -> bool {
        self.maps[set].remove(pos)
    }

    /// Forgets every token after `pos` in all sets, as if it had not been appended.
    pub fn truncate(&mut self, pos: Option<Pos>) {
        for map in &mut self.maps {
            map.retain(|p| pos.is_some_and(|last| p <= last));
        }
        self.last = self.last.min(pos);
        self.previous.clear();
    }

    /// Whether positions can be appended: in order, after everything so far, and within a fixed capacity.
    pub(crate) fn check_room(&self, positions: &[Pos]) -> Result<()> {
        if let Some((first, newest)) = positions.first().zip(positions.last()) {
            let ascending = positions.windows(2).all(|w| w[0] < w[1]);
            if !ascending || self.last.is_some_and(|last| *first <= last) {
                return Err(Error::Request {
                    what: "positions to append",
                    expected: format!("ascending and after {:?}", self.last.map(|p| p.0)),
                    got: format!("{}..={}", first.0, newest.0),
                });
            }
        }
        let (free, capacity) = (self.free(), self.maps[0].capacity());
        if positions.len() > free && self.capacity != Capacity::Growing {
            return Err(Error::CacheFull { wanted: positions.len(), free, capacity });
        }
        Ok(())
    }

    /// Free slots of the fullest set.
    fn free(&self) -> usize {
        self.maps.iter().map(|m| m.capacity() - m.len()).min().unwrap_or(0)
    }

    /// Takes a slot for each position in every set, after [`RowCache::check_room`]; returns them set by set.
    pub(crate) fn reserve(&mut self, positions: &[Pos]) -> Result<Vec<Vec<Slot>>> {
        let capacity = self.maps[0].capacity();
        if let Some(more) = positions.len().checked_sub(self.free()).filter(|&n| n > 0) {
            self.grow((capacity + more).max(2 * capacity))?;
        }
        self.last = positions.last().copied().or(self.last);
        let slots = self.maps.iter_mut().map(|map| positions.iter().filter_map(|&p| map.take(p)).collect()).collect();
        if let Some(compacted) = &mut self.compacted {
            compacted.appended(&self.maps, positions.len(), self.prefix.as_ref().map_or(0, |(_, n)| *n));
        }
        Ok(slots)
    }

    fn grow(&mut self, capacity: usize) -> Result<()> {
        for (k, v) in &mut self.layers {
            for stored in [k, v] {
                let larger = Tensor::zeros((self.n_kv_heads, capacity, self.head_dim), DType::F32, &self.device)?;
                larger.slice_set(stored, 1, 0)?;
                *stored = larger;
            }
        }
        if let Some(compacted) = &mut self.compacted {
            compacted.grow(capacity)?;
        }
        self.maps.iter_mut().for_each(|map| map.grow(capacity));
        Ok(())
    }

    /// Moves the kept tokens to the front of their storage, in order of positions, and shrinks it to `capacity` slots.
    ///
    /// For policies that drop many at once; all sets must hold equally many.
    pub fn compact(&mut self, capacity: usize) -> Result<()> {
        let held = self.maps[0].len();
        if self.maps.iter().any(|m| m.len() != held) || capacity < held {
            return Err(Error::Request {
                what: "capacity to compact to",
                expected: format!("at least the {held} tokens that every set holds"),
                got: format!("{capacity}, with sets of {:?}", self.maps.iter().map(SlotMap::len).collect::<Vec<_>>()),
            });
        }
        for layer in 0..self.layers.len() {
            let (k, v) = &self.layers[layer];
            self.layers[layer] = (self.gathered(layer, k, capacity)?, self.gathered(layer, v, capacity)?);
        }
        if let Some(compacted) = self.compacted.take() {
            let gather = |(layer, keys): (usize, &Tensor)| self.gathered(layer, keys, capacity);
            let originals = compacted.originals().iter().enumerate().map(gather).collect::<Result<_>>()?;
            self.compacted = Some(compacted.gathered(originals, &self.maps, capacity));
        }
        self.maps.iter_mut().for_each(|map| map.compact(capacity));
        Ok(())
    }

    /// The kept vectors of a layer in order of positions, in storage of `capacity` slots.
    fn gathered(&self, layer: usize, stored: &Tensor, capacity: usize) -> Result<Tensor> {
        let fresh = Tensor::zeros((self.n_kv_heads, capacity, self.head_dim), DType::F32, &self.device)?;
        for head in 0..self.n_kv_heads {
            let order = self.set_of(layer, head).order();
            if !order.is_empty() {
                let index = Tensor::new(order, &self.device)?;
                let kept = stored.narrow(0, head, 1)?.index_select(&index, 1)?.contiguous()?;
                fresh.narrow(0, head, 1)?.slice_set(&kept, 1, 0)?;
            }
        }
        Ok(fresh)
    }
}
