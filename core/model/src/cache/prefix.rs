//! Keys and values that several rows read and none writes.

use std::ops::Range;
use std::sync::Arc;

use candle_core::Tensor;

use super::store::{KvStore, Part};
use super::{Pos, Precision, Rotation, RowCache, Scope};
use crate::error::{Error, Result};

/// The cache of a common beginning. Rows may use any number of its first tokens.
#[derive(Debug)]
pub struct Prefix {
    positions: Vec<Pos>,
    /// Keys and values of each layer and KV head, `[tokens, D]` in order of positions.
    store: KvStore,
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
        let n = cache.sets()[0].len();
        cache.compact(|_| n)?;
        Ok(Self { positions: cache.sets()[0].positions().collect(), store: cache.store })
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

    /// Keys and values of a head, `[tokens, D]` each; `None` where they are not on the host.
    pub(crate) fn host(&self, layer: usize, head: usize) -> Option<(&[f32], &[f32])> {
        self.store.host(layer, head)
    }

    /// Keys and values of a head at some places, `[places, D]` each.
    pub(crate) fn tensors(&self, layer: usize, head: usize, places: &[u32]) -> Result<(Tensor, Tensor)> {
        self.store.tensors(layer, head, places)
    }

    /// Resident bytes.
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }
}

impl RowCache {
    /// An empty cache behind the first `n_tokens` of a shared prefix without those at the places in `hidden`, which nothing
    /// will see: what lies before them is shared, what comes after them is copied.
    ///
    /// # Errors
    /// If the places do not lie among those tokens, the prefix has fewer, or something was appended or rotated otherwise
    /// before.
    pub fn with_prefix_without(self, prefix: &Arc<Prefix>, n_tokens: usize, hidden: Range<usize>) -> Result<Self> {
        let fits = hidden.start <= hidden.end && hidden.end <= n_tokens && n_tokens <= prefix.len();
        if !fits || self.rotation != Rotation::Position {
            return Err(Error::Request {
                what: "tokens to hide",
                expected: format!("places among at most {} tokens, in a cache rotated by position", prefix.len()),
                got: format!("{hidden:?} of {n_tokens}, {:?}", self.rotation),
            });
        }
        let mut cache = self.with_prefix(prefix.clone(), hidden.start)?;
        let seen = hidden.end..n_tokens;
        if !seen.is_empty() {
            let slots = cache.reserve(&prefix.positions()[seen.clone()])?;
            let places: Vec<u32> = seen.map(|place| place as u32).collect();
            for at in cache.heads() {
                let (keys, values) = prefix.tensors(at.0, at.1, &places)?;
                let own = &slots[cache.set_index(at.0, at.1)];
                // What is shared was rounded when it was stored.
                cache.store.write_tensor(Part::Keys, at, own, Precision::F32, &keys)?;
                cache.store.write_tensor(Part::Values, at, own, Precision::F32, &values)?;
            }
        }
        // Where nothing is seen behind them, the hidden tokens still count.
        cache.last = n_tokens.checked_sub(1).map(|last| prefix.positions()[last]);
        Ok(cache)
    }
}
