//! How a token looks back: the shape of its own row of attention weights `p` at layer `l`, mean over query heads.
//!
//! ```text
//! attn_entropy(t)  = -sum_j p_t(j) ln p_t(j)      in nats
//! attn_distance(t) = sum_j p_t(j) (t - j)         in tokens: small where attention is on what is recent
//! ```
//!
//! Both are known when the token is fed. Attention is reduced while it exists, layer by layer and tile by tile.
//!
//! **Differs from `ThinKV` in:** its entropy is of a segment and of what keys receive.
//!
//! Cost: `O(H n)` a layer and token; one number a head is kept.

use epikv_model::taps::{AttentionTap, HeadObservation, ProbePlan};

use super::per_layer::At;
use super::signal::{Signal, SignalSpec};
use crate::error::{Error, Result};
use crate::taps::Chunk;

pub(crate) static ENTROPY: SignalSpec = SignalSpec {
    name: "attn_entropy",
    doc: "Entropy of the token's own row of attention weights at layer l, mean over query heads",
    unit: "nat",
    source: "`attn_entropy` in the code of EpiKV's authors (arXiv 2606.26472), which is the mean over layers",
};

pub(crate) static DISTANCE: SignalSpec = SignalSpec {
    name: "attn_distance",
    doc: "Mean distance in tokens to the attended tokens at layer l, weighted by attention, mean over query heads",
    unit: "tokens",
    source: "mean attention distance",
};

/// A reduction of each row, at one layer.
#[derive(Debug, Clone, Copy)]
struct Row {
    spec: &'static SignalSpec,
    tap: AttentionTap,
    layer: usize,
    of: fn(&HeadObservation) -> &[f32],
}

pub(crate) fn entropy(at: At) -> Result<Box<dyn Signal>> {
    let layer = at.checked(ENTROPY.name)?;
    Ok(Box::new(Row { spec: &ENTROPY, tap: AttentionTap::RowEntropy(layer), layer, of: |seen| &seen.entropy }))
}

pub(crate) fn distance(at: At) -> Result<Box<dyn Signal>> {
    let layer = at.checked(DISTANCE.name)?;
    Ok(Box::new(Row { spec: &DISTANCE, tap: AttentionTap::RowDistance(layer), layer, of: |seen| &seen.distance }))
}

impl Signal for Row {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        ProbePlan::default().attention(self.tap)
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let heads = chunk.attention(self.layer).unwrap_or_default();
        let n = chunk.len();
        let mut sums = vec![0.0; n];
        let mut n_heads = 0;
        for seen in heads {
            let values = (self.of)(seen);
            let group = values.len() / n.max(1);
            if group == 0 || group * n != values.len() {
                return Err(Error::AttentionShape { layer: self.layer, expected: n, got: values.len() });
            }
            for (sum, token) in sums.iter_mut().zip(values.chunks_exact(group)) {
                *sum += token.iter().map(|&v| f64::from(v)).sum::<f64>();
            }
            n_heads += group;
        }
        if n_heads == 0 {
            return Err(Error::AttentionShape { layer: self.layer, expected: n, got: 0 });
        }
        let mean = |sum: f64| Some((sum / n_heads as f64) as f32).filter(|v| v.is_finite());
        Ok(sums.into_iter().map(mean).collect())
    }

    fn reset(&mut self) {}
}
