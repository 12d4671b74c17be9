//! Storage of a cache: one block for each layer and KV head, with as many slots as its kept set has.
//!
//! The store defines the layout, the number format and the bytes. [`SlotMap`](super::SlotMap) records which slots are
//! in use, and the cache which token lies in which slot.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};

use super::{Precision, Slot};
use crate::backend::host::{Numbers, ToHost};
use crate::backend::tensor::ops;
use crate::error::{Error, Result};

/// Where the vectors of a cache lie, and in which numbers.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// In plain f32 vectors, for the CPU kernels.
    Host,
    /// In tensors of a device.
    Tensors {
        /// The device.
        device: Device,
        /// Type of the numbers.
        dtype: DType,
        /// Counts what is copied to the host.
        to_host: ToHost,
    },
}

/// What is stored of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Keys after rotation.
    Keys,
    Values,
    /// Keys before rotation, for [`Rotation::Compacted`](super::Rotation::Compacted) only.
    Originals,
}

/// The vectors of one layer and KV head, `[capacity, D]` by slot.
///
/// Clones share the numbers until one of them is written.
#[derive(Debug, Clone)]
enum Block {
    Host(Arc<Vec<f32>>),
    Tensor(Arc<Tensor>),
}

/// The blocks of a cache or of a shared prefix.
#[derive(Debug, Clone)]
pub(super) struct KvStore {
    place: Place,
    n_kv_heads: usize,
    head_dim: usize,
    /// By layer and KV head (layer-major).
    keys: Vec<Block>,
    values: Vec<Block>,
    originals: Option<Vec<Block>>,
    /// The precision of each group of slots that there ever was.
    groups: Vec<Precision>,
    /// Which numbers a jitter draws.
    pub(super) seed: u64,
}

impl KvStore {
    /// Blocks of `capacity(layer, head)` free slots.
    pub(super) fn new(
        place: Place,
        (n_layers, n_kv_heads): (usize, usize),
        head_dim: usize,
        capacity: impl Fn(usize, usize) -> usize,
    ) -> Result<Self> {
        let blocks = || {
            let heads = (0..n_layers).flat_map(|layer| (0..n_kv_heads).map(move |head| (layer, head)));
            heads.map(|(layer, head)| Block::zeros(&place, capacity(layer, head), head_dim)).collect::<Result<Vec<_>>>()
        };
        let (keys, values) = (blocks()?, blocks()?);
        Ok(Self { place, n_kv_heads, head_dim, keys, values, originals: None, groups: vec![Precision::F32], seed: 0 })
    }

    /// Adds room for the keys before rotation.
    pub(super) fn with_originals(mut self) -> Result<Self> {
        let zeros = |keys: &Block| Block::zeros(&self.place, keys.capacity(self.head_dim), self.head_dim);
        self.originals = Some(self.keys.iter().map(zeros).collect::<Result<_>>()?);
        Ok(self)
    }

    pub(super) fn has_originals(&self) -> bool {
        self.originals.is_some()
    }

    /// The group of slots of a precision.
    pub(super) fn group(&mut self, precision: Precision) -> u32 {
        let known = self.groups.iter().position(|group| *group == precision);
        known.unwrap_or_else(|| {
            self.groups.push(precision);
            self.groups.len() - 1
        }) as u32
    }

    /// The precision of a group of slots.
    pub(super) fn precision(&self, group: u32) -> Precision {
        self.groups[group as usize]
    }

    pub(super) fn is_on_host(&self) -> bool {
        matches!(self.place, Place::Host)
    }

    pub(super) fn n_layers(&self) -> usize {
        self.keys.len() / self.n_kv_heads
    }

    pub(super) fn n_kv_heads(&self) -> usize {
        self.n_kv_heads
    }

    pub(super) fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// Bytes of all slots, free or not.
    pub(super) fn bytes(&self) -> usize {
        let all = self.keys.iter().chain(&self.values).chain(self.originals.iter().flatten());
        all.map(Block::numbers).sum::<usize>() * self.number_bytes()
    }

    /// Bytes of what is stored of one token for one layer and KV head.
    pub(super) fn vector_bytes(&self) -> usize {
        (2 + usize::from(self.has_originals())) * self.head_dim * self.number_bytes()
    }

    fn number_bytes(&self) -> usize {
        match &self.place {
            Place::Host => size_of::<f32>(),
            Place::Tensors { dtype, .. } => dtype.size_in_bytes(),
        }
    }

    /// Keys and values of a head, `[capacity, D]` by slot each; `None` where they are not on the host.
    pub(super) fn host(&self, layer: usize, head: usize) -> Option<(&[f32], &[f32])> {
        let at = layer * self.n_kv_heads + head;
        match (&self.keys[at], &self.values[at]) {
            (Block::Host(keys), Block::Host(values)) => Some((keys, values)),
            _ => None,
        }
    }

    /// Copies keys and values of a head to the host, where they are not there.
    pub(super) fn copied(&self, layer: usize, head: usize) -> Result<(Vec<f32>, Vec<f32>)> {
        let at = layer * self.n_kv_heads + head;
        Ok((self.read(&self.keys[at])?, self.read(&self.values[at])?))
    }

    fn read(&self, block: &Block) -> Result<Vec<f32>> {
        match (block, &self.place) {
            (Block::Host(all), _) => Ok(all.to_vec()),
            (Block::Tensor(tensor), Place::Tensors { to_host, .. }) => to_host.copy(tensor),
            (Block::Tensor(_), Place::Host) => Err(not_on_the_host("a device")),
        }
    }

    /// Keys and values of a head in some slots, `[slots, D]` each, as tensors.
    pub(super) fn tensors(&self, layer: usize, head: usize, slots: &[u32]) -> Result<(Tensor, Tensor)> {
        let at = layer * self.n_kv_heads + head;
        let of = |block: &Block| block.gathered(self.head_dim, slots);
        Ok((of(&self.keys[at])?, of(&self.values[at])?))
    }

    fn part(&mut self, part: Part) -> Option<&mut Vec<Block>> {
        match part {
            Part::Keys => Some(&mut self.keys),
            Part::Values => Some(&mut self.values),
            Part::Originals => self.originals.as_mut(),
        }
    }

    /// Writes the vectors of one head, `vector(i)` into slot `i` of `slots`, in a precision.
    ///
    /// # Errors
    /// If the store is not on the host.
    pub(super) fn write_host<'v>(
        &mut self,
        part: Part,
        (layer, head): (usize, usize),
        slots: &[Slot],
        precision: Precision,
        vector: impl Fn(usize) -> &'v [f32],
    ) -> Result<()> {
        let (d, at, seed) = (self.head_dim, layer * self.n_kv_heads + head, self.seed);
        let Some(blocks) = self.part(part) else { return Ok(()) };
        let Block::Host(all) = &mut blocks[at] else { return Err(not_on_the_host("a device")) };
        let all = Arc::make_mut(all);
        for (i, slot) in slots.iter().enumerate() {
            precision.store(seed, vector(i), (layer, head), &mut all[slot.0 * d..(slot.0 + 1) * d]);
        }
        Ok(())
    }

    /// Writes vectors of one head, `[slots, D]`, in a precision. On a device a jitter goes through the host.
    pub(super) fn write_tensor(
        &mut self,
        part: Part,
        (layer, head): (usize, usize),
        slots: &[Slot],
        precision: Precision,
        vectors: &Tensor,
    ) -> Result<()> {
        let (d, at, place) = (self.head_dim, layer * self.n_kv_heads + head, self.place.clone());
        let (device, dtype, to_host) = match place {
            Place::Host => {
                let all = Numbers::lent(vectors)?;
                return self.write_host(part, (layer, head), slots, precision, |i| &all[i * d..(i + 1) * d]);
            }
            Place::Tensors { device, dtype, to_host } => (device, dtype, to_host),
        };
        let vectors = match precision {
            Precision::F32 => vectors.clone(),
            Precision::Bf16 => vectors.to_dtype(DType::BF16)?,
            Precision::F16 => vectors.to_dtype(DType::F16)?,
            Precision::Jitter(_) => {
                let plain = to_host.copy(vectors)?;
                let mut moved = vec![0.0; plain.len()];
                for (from, to) in plain.chunks_exact(d).zip(moved.chunks_exact_mut(d)) {
                    precision.store(self.seed, from, (layer, head), to);
                }
                Tensor::from_vec(moved, vectors.dims(), &device)?
            }
        };
        let vectors = vectors.to_dtype(dtype)?;
        match self.part(part).map(|blocks| &mut blocks[at]) {
            Some(Block::Tensor(stored)) => write_runs(own(stored)?, &vectors, slots),
            _ => Ok(()),
        }
    }

    /// Adds free slots to a head, up to `capacity`.
    pub(super) fn grow(&mut self, layer: usize, head: usize, capacity: usize) -> Result<()> {
        let (d, at) = (self.head_dim, layer * self.n_kv_heads + head);
        for part in [Part::Keys, Part::Values, Part::Originals] {
            if let Some(blocks) = self.part(part) {
                blocks[at].grow(d, capacity)?;
            }
        }
        Ok(())
    }

    /// Moves the vectors of some slots of a head to the front, in this order, and keeps `capacity` slots.
    pub(super) fn compact(&mut self, layer: usize, head: usize, slots: &[u32], capacity: usize) -> Result<()> {
        let (d, at) = (self.head_dim, layer * self.n_kv_heads + head);
        for part in [Part::Keys, Part::Values, Part::Originals] {
            if let Some(blocks) = self.part(part) {
                blocks[at] = blocks[at].compacted(d, slots, capacity)?;
            }
        }
        Ok(())
    }

    /// Rotates the original keys of some slots of a head again, by the angles `[slots, D/2]`.
    pub(super) fn rotate(&mut self, layer: usize, head: usize, slots: &[Slot], cos: &[f32], sin: &[f32]) -> Result<()> {
        let (d, at) = (self.head_dim, layer * self.n_kv_heads + head);
        let Some(originals) = &self.originals else { return Ok(()) };
        match (&originals[at], &mut self.keys[at]) {
            (Block::Host(originals), Block::Host(keys)) => {
                let keys = Arc::make_mut(keys);
                let angles = cos.chunks_exact(d / 2).zip(sin.chunks_exact(d / 2));
                for (slot, (cos, sin)) in slots.iter().zip(angles) {
                    let own = slot.0 * d..(slot.0 + 1) * d;
                    let key = &mut keys[own.clone()];
                    key.copy_from_slice(&originals[own]);
                    epikv_kernels::rope::rotate(key, cos, sin);
                }
                Ok(())
            }
            (originals, Block::Tensor(keys)) => {
                let index: Vec<u32> = slots.iter().map(|slot| slot.0 as u32).collect();
                let originals = originals.gathered(d, &index)?.to_dtype(DType::F32)?.unsqueeze(1)?; // [n, 1, D]
                let angles = |v: &[f32]| Tensor::from_slice(v, (slots.len(), d / 2), keys.device());
                let rotated = ops::rotate(&originals, &angles(cos)?, &angles(sin)?)?.squeeze(1)?;
                let rotated = rotated.to_dtype(keys.dtype())?;
                write_runs(own(keys)?, &rotated, slots)
            }
            _ => Err(not_on_the_host("originals on a device")),
        }
    }
}

impl Block {
    fn zeros(place: &Place, capacity: usize, d: usize) -> Result<Self> {
        Ok(match place {
            Place::Host => Self::Host(Arc::new(vec![0.0; capacity * d])),
            Place::Tensors { device, dtype, .. } => {
                Self::Tensor(Arc::new(Tensor::zeros((capacity, d), *dtype, device)?))
            }
        })
    }

    fn numbers(&self) -> usize {
        match self {
            Self::Host(all) => all.len(),
            Self::Tensor(tensor) => tensor.elem_count(),
        }
    }

    fn capacity(&self, d: usize) -> usize {
        self.numbers() / d
    }

    fn grow(&mut self, d: usize, capacity: usize) -> Result<()> {
        match self {
            Self::Host(all) => {
                let mut larger = vec![0.0; capacity * d];
                larger[..all.len()].copy_from_slice(all);
                *all = Arc::new(larger);
            }
            Self::Tensor(stored) => {
                let larger = Tensor::zeros((capacity, d), stored.dtype(), stored.device())?;
                if stored.elem_count() > 0 {
                    larger.slice_set(stored, 0, 0)?;
                }
                *stored = Arc::new(larger);
            }
        }
        Ok(())
    }

    fn compacted(&self, d: usize, slots: &[u32], capacity: usize) -> Result<Self> {
        match self {
            Self::Host(all) => {
                let mut front = vec![0.0; capacity * d];
                for (to, &slot) in front.chunks_exact_mut(d).zip(slots) {
                    to.copy_from_slice(&all[slot as usize * d..(slot as usize + 1) * d]);
                }
                Ok(Self::Host(Arc::new(front)))
            }
            Self::Tensor(stored) => {
                let front = Tensor::zeros((capacity, d), stored.dtype(), stored.device())?;
                if !slots.is_empty() {
                    front.slice_set(&self.gathered(d, slots)?, 0, 0)?;
                }
                Ok(Self::Tensor(Arc::new(front)))
            }
        }
    }

    /// The vectors of some slots, `[slots, D]`.
    fn gathered(&self, d: usize, slots: &[u32]) -> Result<Tensor> {
        match self {
            Self::Host(all) => {
                let of = |&slot: &u32| all[slot as usize * d..(slot as usize + 1) * d].iter().copied();
                let found: Vec<f32> = slots.iter().flat_map(of).collect();
                Ok(Tensor::from_vec(found, (slots.len(), d), &Device::Cpu)?)
            }
            Self::Tensor(stored) => Ok(stored.index_select(&Tensor::new(slots, stored.device())?, 0)?.contiguous()?),
        }
    }
}

/// The tensor for this owner alone: writes must not reach a clone of the cache.
fn own(shared: &mut Arc<Tensor>) -> Result<&Tensor> {
    if Arc::get_mut(shared).is_none() {
        *shared = Arc::new(shared.copy()?);
    }
    Ok(shared)
}

/// Copies `new` `[T, D]` into `stored` `[capacity, D]`, one call for each run of neighbouring slots.
fn write_runs(stored: &Tensor, new: &Tensor, slots: &[Slot]) -> Result<()> {
    let mut from = 0;
    while from < slots.len() {
        let run = (from..slots.len()).take_while(|&i| slots[i].0 == slots[from].0 + (i - from)).count();
        stored.slice_set(&new.narrow(0, from, run)?.contiguous()?, 0, slots[from].0)?;
        from += run;
    }
    Ok(())
}

pub(crate) fn not_on_the_host(got: &str) -> Error {
    Error::Request { what: "cache for the CPU kernel", expected: "f32 on the host".to_owned(), got: got.to_owned() }
}
