//! Distance of a token's key from the mean direction of the keys so far.
//!
//! ```text
//! mu_h(t)  = 1/n sum over tokens j up to t of k_h(j) / |k_h(j)|
//! diff(t)  = 1/H_kv sum_h ( 1 - cos(k_h(t), mu_h(t)) )
//! ```
//!
//! with `k` the key of layer `l` after rotation. The mean starts where windows start: at the first decoded token, unless
//! told otherwise. It is undefined while all keys, or their mean, are zero.
//!
//! **Differs from `KeyDiff` in:** there the mean is over the candidates of the moment and every score is made again; here a
//! token has the one value that was known when it was fed. The sign is the same: higher is kept.
//!
//! Cost: `O(H_kv D)` a token; state: one direction a head.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};

use super::per_layer::At;
use super::signal::{Signal, SignalSpec};
use crate::error::Result;
use crate::formulas::direction::Directions;
use crate::taps::Chunk;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "key_diff",
    doc: "Cosine distance of the token's key at layer l to the mean direction of the keys up to it, mean over KV heads",
    unit: "1",
    source: "KeyDiff (arXiv 2504.15364), computed when the token is fed",
};

/// The signal at one layer.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyDiff {
    layer: usize,
    head_dim: usize,
    /// Directions so far, by head; empty before the first token.
    heads: Vec<Directions>,
}

impl KeyDiff {
    pub(crate) fn build(at: At) -> Result<Box<dyn Signal>> {
        Ok(Box::new(Self { layer: at.checked(SPEC.name)?, ..Self::default() }))
    }

    /// The value of the next token from its keys `[H_kv, D]`.
    fn next(&mut self, keys: &[f32]) -> Option<f32> {
        let keys = keys.chunks_exact(self.head_dim);
        self.heads.resize(keys.len(), Directions::default());
        let n_heads = keys.len() as f64;
        let mut total = 0.0;
        for (key, directions) in keys.zip(&mut self.heads) {
            directions.add(key);
            total += 1.0 - directions.mean().cosine(key)?;
        }
        Some((total / n_heads) as f32).filter(|v| v.is_finite())
    }
}

impl Signal for KeyDiff {
    fn spec(&self) -> &'static SignalSpec {
        &SPEC
    }

    fn plan(&self) -> ProbePlan {
        ProbePlan::default().tap(TapPoint::KeyPostRope(self.layer), Reduce::Full)
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let point = TapPoint::KeyPostRope(self.layer);
        self.head_dim = chunk.head_dim(SPEC.name, point)?;
        chunk.lend(SPEC.name, point, Reduce::Full, |keys, width| {
            keys.chunks_exact(width).map(|token| self.next(token)).collect()
        })
    }

    fn reset(&mut self) {
        self.heads.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let mut signal = KeyDiff { head_dim: 2, ..KeyDiff::default() };
        assert_eq!(signal.next(&[3.0, 0.0, 0.0, 2.0]), Some(0.0), "the first key is its own mean");
        // First head: (0, 1) beside the sum (1, 1); second head again the same direction.
        let want = (1.0 - 0.5_f64.sqrt()) / 2.0;
        assert!((f64::from(signal.next(&[0.0, 5.0, 0.0, 7.0]).expect("defined")) - want).abs() < 1e-7);
        assert_eq!(signal.next(&[0.0, 0.0, 1.0, 0.0]), None, "a zero key has no direction");
        signal.reset();
        assert_eq!(signal.next(&[0.0, 5.0, 1.0, 0.0]), Some(0.0));
    }
}
