//! What a token is worth by the keys that are held: functions of the live cache that need nothing recorded.
//!
//! ```text
//! k-norm(j)   = - |k_j|
//! key-diff(j) = - cos(k_j, a)        a = mean over the held tokens i of k_i / |k_i|
//! ```
//!
//! with `k_j` the key after rotation, for each layer and KV head. A kept set that several heads or layers share has the mean
//! of their scores. A key of length zero has the cosine 0.
//!
//! Cost: `O(H_kv n D)` a layer when asked; state: none.
//!
//! # References
//! K-norm: Devoto et al. 2024, arXiv 2406.11430. `KeyDiff`: arXiv 2504.15364. Both as `KnormPress` and `KeyDiffPress` of
//! NVIDIA's kvpress have them.

use epikv_model::cache::{RowCache, Scope, SlotMap};

use crate::error::Result;

/// A score by keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyScore {
    /// Short keys are kept.
    Norm,
    /// Keys that point away from the mean direction are kept.
    Difference,
}

impl KeyScore {
    /// The scores of the tokens that each kept set of a cache holds, in order of positions.
    ///
    /// # Errors
    /// If the keys are not on the CPU.
    pub fn of(self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        let sets = cache.sets();
        let mut sums: Vec<Vec<f64>> = sets.iter().map(|set| vec![0.0; set.len()]).collect();
        let (mut n_layers, mut n_heads) = (0, 0);
        while n_layers < cache.n_layers() {
            n_heads = cache.layer(n_layers).0.dims()[0];
            cache.keys(n_layers, |keys| {
                for (head, keys) in keys.chunks_exact((keys.len() / n_heads).max(1)).enumerate().take(n_heads) {
                    let set = match cache.scope() {
                        Scope::Global => 0,
                        Scope::PerLayer => n_layers,
                        Scope::PerHead => n_layers * n_heads + head,
                    };
                    for (sum, score) in sums[set].iter_mut().zip(self.of_head(keys, &sets[set])) {
                        *sum += score;
                    }
                }
            })?;
            n_layers += 1;
        }
        let sharing = match cache.scope() {
            Scope::Global => n_layers * n_heads,
            Scope::PerLayer => n_heads,
            Scope::PerHead => 1,
        };
        let mean = |sum: f64| (sum / sharing as f64) as f32;
        Ok(sums.into_iter().map(|set| set.into_iter().map(mean).collect()).collect())
    }

    /// The scores of one head from its keys, `[capacity, D]` by slot.
    fn of_head(self, keys: &[f32], set: &SlotMap) -> Vec<f64> {
        let d = keys.len() / set.capacity().max(1);
        let key = |slot: &u32| &keys[*slot as usize * d..(*slot as usize + 1) * d];
        let norm = |key: &[f32]| key.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        if self == Self::Norm {
            return set.order().iter().map(|slot| -norm(key(slot))).collect();
        }
        let mut anchor = vec![0.0; d];
        for key in set.order().iter().map(key) {
            let length = norm(key);
            if length > 0.0 {
                anchor.iter_mut().zip(key).for_each(|(sum, &x)| *sum += f64::from(x) / length);
            }
        }
        let anchor_norm = anchor.iter().map(|x| x * x).sum::<f64>().sqrt();
        let cosine = |key: &[f32]| {
            let product: f64 = key.iter().zip(&anchor).map(|(&x, a)| f64::from(x) * a).sum();
            let lengths = norm(key) * anchor_norm;
            if lengths > 0.0 { product / lengths } else { 0.0 }
        };
        set.order().iter().map(|slot| -cosine(key(slot))).collect()
    }
}
