//! Keys and values of one sequence: a shared read-only prefix, if any, and slots of its own.

mod compacted;
mod precision;
mod prefix;
mod slots;
mod store;
mod view;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::Tensor;

use crate::config::ModelConfig;
use crate::error::{Error, Result};

use compacted::Compacted;
pub use precision::Precision;
pub use prefix::Prefix;
pub use slots::{Pos, Scope, Slot, SlotMap};
use store::KvStore;
pub(crate) use store::{Part, Place, not_on_the_host};
pub use view::{CacheView, HeadView};

/// How many slots a kept set has, and what happens when all are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capacity {
    /// So many in each set; one token more is an error: the resident size is fixed, as under a budget.
    Fixed(usize),
    /// As many as this says of each set, in the order of [`RowCache::sets`]; fixed as well.
    Sets(Vec<usize>),
    /// The storage of a full set doubles.
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
    /// By its place among the tokens held: after an eviction the later keys are rotated again, each time from the one
    /// original that is stored beside them in f32.
    Compacted,
}

/// Slots that a growing cache starts with.
const FIRST_CAPACITY: usize = 64;

/// The cache of one row of the batch.
///
/// Keys are stored after rotation. Slots are storage; order is by position. Each kept set has its own number of slots.
#[derive(Debug, Clone)]
pub struct RowCache {
    scope: Scope,
    is_growing: bool,
    rotation: Rotation,
    /// The group of the tokens to come.
    new_group: u32,
    prefix: Option<(Arc<Prefix>, usize)>,
    /// One map, one a layer, or one a layer and KV head, by scope.
    maps: Vec<SlotMap>,
    store: KvStore,
    /// For [`Rotation::Compacted`] only.
    compacted: Option<Compacted>,
    /// Latest position ever appended, evicted or not.
    last: Option<Pos>,
    /// Residual of the last token at tapped layers, for step differences across calls.
    pub(crate) previous: BTreeMap<usize, Tensor>,
}

impl RowCache {
    /// An empty cache at a place.
    ///
    /// # Errors
    /// If the capacities are not one a kept set, or the device has no room.
    pub(crate) fn at(place: Place, config: &ModelConfig, scope: Scope, capacity: Capacity) -> Result<Self> {
        let sizes = (config.n_layers, config.n_kv_heads);
        let n_sets = scope.n_sets(sizes.0, sizes.1);
        let is_growing = capacity == Capacity::Growing;
        let slots = match capacity {
            Capacity::Fixed(n) => vec![n; n_sets],
            Capacity::Sets(each) => each,
            Capacity::Growing => vec![FIRST_CAPACITY; n_sets],
        };
        if slots.len() != n_sets {
            return Err(Error::Request {
                what: "capacities of a cache",
                expected: format!("{n_sets}, one a kept set"),
                got: slots.len().to_string(),
            });
        }
        let capacity = |layer, head| slots[scope.set_index(sizes.1, layer, head)];
        Ok(Self {
            scope,
            is_growing,
            rotation: Rotation::Position,
            new_group: 0,
            prefix: None,
            store: KvStore::new(place, sizes, config.head_dim, capacity)?,
            maps: slots.iter().map(|&n| SlotMap::new(n)).collect(),
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
        let is_compacted = rotation == Rotation::Compacted;
        if is_compacted && self.store.precision(self.new_group) != Precision::F32 {
            return Err(Error::Request {
                what: "rotation of a cache",
                expected: "one that leaves stored keys as they are".to_owned(),
                got: format!("{rotation:?} in {}", self.store.precision(self.new_group)),
            });
        }
        let compacted = is_compacted.then(|| Compacted::new(&self.maps));
        let store = if is_compacted { self.store.with_originals()? } else { self.store };
        Ok(Self { rotation, store, compacted, ..self })
    }

    /// Whether keys before rotation must be stored too.
    pub(crate) fn wants_originals(&self) -> bool {
        self.store.has_originals()
    }

    /// Tokens of the shared prefix and of the own slots that a kept set holds.
    pub fn len(&self, set: usize) -> usize {
        self.prefix_len() + self.maps[set].len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.prefix_len() == 0 && self.maps.iter().all(SlotMap::is_empty)
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

    /// The number of that set among [`RowCache::sets`].
    pub fn set_index(&self, layer: usize, head: usize) -> usize {
        self.scope.set_index(self.n_kv_heads(), layer, head)
    }

    /// Layers.
    pub fn n_layers(&self) -> usize {
        self.store.n_layers()
    }

    /// KV heads of a layer.
    pub fn n_kv_heads(&self) -> usize {
        self.store.n_kv_heads()
    }

    /// All layers and KV heads, layer-major.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let n_kv_heads = self.n_kv_heads();
        (0..self.n_layers()).flat_map(move |layer| (0..n_kv_heads).map(move |head| (layer, head)))
    }

    /// Own keys and values of a head, `[capacity, D]` by slot each; `None` where they are not on the host.
    pub(crate) fn host(&self, layer: usize, head: usize) -> Option<(&[f32], &[f32])> {
        self.store.host(layer, head)
    }

    /// Own keys and values of a head in some slots, `[slots, D]` each.
    pub(crate) fn tensors(&self, layer: usize, head: usize, slots: &[u32]) -> Result<(Tensor, Tensor)> {
        self.store.tensors(layer, head, slots)
    }

    /// Bytes of the own storage, free slots and originals included; a shared prefix is counted by its owner.
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }

    /// Bytes of the tokens held, set by set, originals and those of a shared prefix in use included.
    pub fn held_bytes(&self) -> usize {
        let held: usize = self.heads().map(|(layer, head)| self.len(self.set_index(layer, head))).sum();
        held * self.store.vector_bytes()
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

    /// Whether positions can be appended: in order, after everything so far, and within fixed capacities.
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
        match self.maps.iter().min_by_key(|map| map.n_free()) {
            Some(fullest) if !self.is_growing && positions.len() > fullest.n_free() => {
                let (free, capacity) = (fullest.n_free(), fullest.capacity());
                Err(Error::CacheFull { wanted: positions.len(), free, capacity })
            }
            _ => Ok(()),
        }
    }

    /// Takes a slot for each position in every set, after [`RowCache::check_room`]; returns them set by set.
    pub(crate) fn reserve(&mut self, positions: &[Pos]) -> Result<Vec<Vec<Slot>>> {
        self.grow_for(positions.len())?;
        self.last = positions.last().copied().or(self.last);
        let group = self.new_group;
        let slots = self.maps.iter_mut().map(|map| positions.iter().filter_map(|&p| map.take(p, group)).collect());
        let slots = slots.collect();
        if let Some(compacted) = &mut self.compacted {
            compacted.appended(&self.maps, positions.len(), self.prefix.as_ref().map_or(0, |(_, n)| *n));
        }
        Ok(slots)
    }

    /// Makes room for `n` tokens in the sets that have none.
    fn grow_for(&mut self, n: usize) -> Result<()> {
        if self.maps.iter().all(|map| map.n_free() >= n) {
            return Ok(());
        }
        let wanted = |map: &SlotMap| {
            let more = n.saturating_sub(map.n_free());
            (more > 0).then(|| (map.capacity() + more).max(2 * map.capacity()))
        };
        let capacities: Vec<_> = self.maps.iter().map(wanted).collect();
        for (layer, head) in self.heads() {
            if let Some(capacity) = capacities[self.set_index(layer, head)] {
                self.store.grow(layer, head, capacity)?;
            }
        }
        for (map, capacity) in self.maps.iter_mut().zip(capacities) {
            if let Some(capacity) = capacity {
                map.grow(capacity);
            }
        }
        Ok(())
    }

    /// Moves the kept tokens to the front of their storage, in order of positions, and shrinks or widens each set to
    /// `capacity(set)` slots.
    ///
    /// For policies that drop many at once, or that give a set another budget.
    ///
    /// # Errors
    /// If a set holds more, before anything is changed.
    pub fn compact(&mut self, capacity: impl Fn(usize) -> usize) -> Result<()> {
        if let Some((set, map)) = self.maps.iter().enumerate().find(|(set, map)| capacity(*set) < map.len()) {
            return Err(Error::Request {
                what: "capacity to compact to",
                expected: format!("at least the {} tokens that kept set {set} holds", map.len()),
                got: capacity(set).to_string(),
            });
        }
        for (layer, head) in self.heads() {
            let set = self.set_index(layer, head);
            self.store.compact(layer, head, self.maps[set].order(), capacity(set))?;
        }
        for (set, map) in self.maps.iter_mut().enumerate() {
            if let Some(compacted) = &mut self.compacted {
                compacted.gathered(set, map, capacity(set));
            }
            map.compact(capacity(set));
        }
        Ok(())
    }
}
