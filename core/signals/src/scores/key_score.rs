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

use epikv_model::cache::RowCache;

use crate::error::Result;
use crate::taps::held::{Held, by_set};

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
        by_set(cache, |_, held| self.of_head(held))
    }

    /// The scores of one head.
    fn of_head(self, held: Held<'_>) -> Vec<f64> {
        let norm = |key: &[f32]| key.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let keys = || (0..held.len()).map(|place| held.key(place));
        if self == Self::Norm {
            return keys().map(|key| -norm(key)).collect();
        }
        let mut anchor = vec![0.0; held.head_dim];
        for key in keys() {
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
        keys().map(|key| -cosine(key)).collect()
    }
}
