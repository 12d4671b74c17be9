//! Keys and values that several rows read and none writes.

use std::ops::Range;
use std::sync::Arc;

use candle_core::Tensor;

use super::write::write_runs;
use super::{Pos, Rotation, RowCache, Scope};
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
            for (layer, (stored_k, stored_v)) in cache.layers.iter().enumerate() {
                let (k, v) = prefix.layer(layer);
                for (stored, shared) in [(stored_k, k), (stored_v, v)] {
                    // Every set took the same slots, since all were empty.
                    write_runs(stored, &shared.narrow(1, seen.start, seen.len())?, &slots[0])?;
                }
            }
        }
        // Where nothing is seen behind them, the hidden tokens still count.
        cache.last = n_tokens.checked_sub(1).map(|last| prefix.positions()[last]);
        Ok(cache)
    }
}
