//! The angles that the new tokens of a pass are rotated by.
//!
//! A token is rotated by its position, or by the number of tokens held. That number is counted in each kept set
//! separately, so heads of sets with different counts rotate the same token by different angles.

use candle_core::Tensor;

use crate::backend::operations::Backend;
use crate::batch::RowInput;
use crate::cache::{Rotation, RowCache};
use crate::error::Result;
use crate::rope::Rope;

/// Angles of the packed new tokens at all layers.
pub(crate) struct Angles<'r> {
    rope: &'r Rope,
    backend: &'r dyn Backend,
    n_kv_heads: usize,
    rows: Vec<Numbers>,
    /// Those of all layers and heads, where no row has others.
    shared: Option<LayerAngles<'r>>,
}

/// Rotary positions of the new tokens of one row.
enum Numbers {
    /// One a token.
    Shared(Vec<u32>),
    /// The first one by layer and KV head (layer-major), and how many follow one another from there.
    ByHead(Vec<u32>, u32),
}

/// Angles of the packed new tokens at one layer.
#[derive(Debug, Clone)]
pub(crate) struct LayerAngles<'r> {
    backend: &'r dyn Backend,
    /// `[T, D/2]`, or `[T * n_sets, D/2]` with the KV heads of a token one after another.
    cos: Tensor,
    sin: Tensor,
    /// Angles of one token: 1, or one for each KV head.
    n_sets: usize,
}

impl<'r> Angles<'r> {
    /// For rows that are about to be appended to their caches.
    pub(crate) fn new(
        rope: &'r Rope,
        backend: &'r dyn Backend,
        rows: &[RowInput],
        caches: &[&mut RowCache],
        n_kv_heads: usize,
    ) -> Result<Self> {
        let rows = rows.iter().zip(caches).map(|(row, cache)| Numbers::of(row, cache)).collect();
        let mut angles = Self { rope, backend, n_kv_heads, rows, shared: None };
        if angles.rows.iter().all(|row| matches!(row, Numbers::Shared(_))) {
            angles.shared = Some(angles.made(0, 1)?);
        }
        Ok(angles)
    }

    /// The angles of a layer.
    pub(crate) fn of_layer(&self, layer: usize) -> Result<LayerAngles<'r>> {
        match &self.shared {
            Some(shared) => Ok(shared.clone()),
            None => self.made(layer, self.n_kv_heads),
        }
    }

    fn made(&self, layer: usize, n_sets: usize) -> Result<LayerAngles<'r>> {
        let of_row = |row: &Numbers| -> Vec<u32> {
            match row {
                Numbers::Shared(each) => each.iter().flat_map(|&n| std::iter::repeat_n(n, n_sets)).collect(),
                Numbers::ByHead(first, n_tokens) => {
                    let heads = &first[layer * n_sets..(layer + 1) * n_sets];
                    (0..*n_tokens).flat_map(|i| heads.iter().map(move |first| first + i)).collect()
                }
            }
        };
        let numbers: Vec<u32> = self.rows.iter().flat_map(of_row).collect();
        let shape = [numbers.len(), self.rope.n_pairs()];
        let (cos, sin) = self.rope.angles(numbers.into_iter());
        let backend = self.backend;
        Ok(LayerAngles { backend, cos: backend.upload(cos, &shape)?, sin: backend.upload(sin, &shape)?, n_sets })
    }
}

impl Numbers {
    fn of(row: &RowInput, cache: &RowCache) -> Self {
        if let Some(chosen) = &row.rope {
            return Self::Shared(chosen.clone());
        }
        if cache.rotation() == Rotation::Position {
            return Self::Shared(row.positions().iter().map(|pos| pos.0).collect());
        }
        let (first, n_tokens) = (cache.len(0) as u32, row.tokens.len() as u32);
        if (1..cache.sets().len()).all(|set| cache.len(set) as u32 == first) {
            return Self::Shared((first..first + n_tokens).collect());
        }
        let heads = (0..cache.n_layers()).flat_map(|layer| (0..cache.n_kv_heads()).map(move |head| (layer, head)));
        Self::ByHead(heads.map(|(layer, head)| cache.len(cache.set_index(layer, head)) as u32).collect(), n_tokens)
    }
}

impl LayerAngles<'_> {
    /// Rotates queries or keys `[T, H, D]`: the heads that read a KV head by its angles.
    pub(crate) fn rotate(&self, x: &Tensor) -> Result<Tensor> {
        if self.n_sets == 1 {
            return self.backend.rotate(x, &self.cos, &self.sin);
        }
        let (tokens, heads, d) = x.dims3()?;
        let by_set = x.reshape((tokens * self.n_sets, heads / self.n_sets, d))?;
        Ok(self.backend.rotate(&by_set, &self.cos, &self.sin)?.reshape((tokens, heads, d))?)
    }
}
