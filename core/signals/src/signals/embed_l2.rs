//! How far the embedding moves from one token to the next: the step of [`hs_l2`](super::hs_l2) before any block.
//!
//! ```text
//! e(t) = || E(token t) - E(token t-1) ||_2
//! ```
//!
//! It depends on two tokens and on no context: a sanity baseline. What the step at a layer says beyond it, the blocks
//! have made. The first token that a cache ever takes has no predecessor and no value.
//!
//! Cost: `O(d)` a token, on the device; one number leaves it.

use epikv_model::taps::{Reduce, TapPoint};

use super::per_layer::{At, PerLayer};
use super::signal::{Signal, SignalSpec};
use crate::error::Result;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "embed_l2",
    doc: "L2 norm of the change of the embedding from the previous token: |E(t) - E(t-1)|, without context",
    unit: "1",
    source: "the baseline of hs_l2 (EpiKV, arXiv 2606.26472) before any block",
};

pub(crate) fn build(n_layers: usize) -> Result<Box<dyn Signal>> {
    PerLayer::step(&SPEC, |_| TapPoint::Embed, Reduce::StepNorm, At { layer: 0, n_layers })
}
