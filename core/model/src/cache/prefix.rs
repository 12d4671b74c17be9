//! Keys and values that several rows read and none writes.

use candle_core::Tensor;

use super::{Pos, RowCache, Scope};
use crate::error::{Error, Result};

/// The cache of a common beginning. Rows may use any number of its first tokens.
#[derive(Debug)]
pub struct Prefix {
    positions: Vec<Pos>,
    /// `[H_kv, tokens, D]` keys and values of each layer, in order of positions.
    layers: Vec<(Tensor, Tensor)>,
}

impl Prefix {
    /// Freezes a cache with one kept set and no prefix of its own.
    pub fn freeze(mut cache: RowCache) -> Result<Self> {
        if cache.scope() != Scope::Global || cache.prefix_len() > 0 {
            return Err(Error::Request {
                what: "cache to share",
                expected: "one kept set for all layers and no prefix of its own".to_owned(),
                got: format!("{:?} with a prefix of {}", cache.scope(), cache.prefix_len()),
            });
        }
        cache.compact(cache.sets()[0].len())?;
        Ok(Self { positions: cache.sets()[0].positions().collect(), layers: cache.layers })
    }

    /// Tokens.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Positions, ascending.
    pub fn positions(&self) -> &[Pos] {
        &self.positions
    }

    /// Keys and values of a layer, `[H_kv, tokens, D]`.
    pub(crate) fn layer(&self, layer: usize) -> (&Tensor, &Tensor) {
        let (k, v) = &self.layers[layer];
        (k, v)
    }

    /// Resident bytes.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|(k, v)| 4 * (k.elem_count() + v.elem_count())).sum()
    }
}
