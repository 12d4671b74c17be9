//! Change of the residual stream from one token to the next, as an L2 norm.
//!
//! ```text
//! g_l(t) = || x_{l+1}(t) - x_{l+1}(t-1) ||_2
//! ```
//!
//! with `x_{l+1}` the residual stream after block `l` (0-based), before the final norm for the last block too. The first
//! token that a cache ever takes has no predecessor and no value; the first decoded token's is the last prompt token.
//!
//! **Differs from the published runs in:** the last layer, which they read after the final norm, and the first token,
//! where they write 0.
//!
//! Cost: `O(d)` a token, on the device; one number leaves it.

use epikv_model::taps::{Reduce, TapPoint};

use super::per_layer::{At, PerLayer};
use super::signal::{Signal, SignalSpec};
use crate::error::Result;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "hs_l2",
    doc: "L2 norm of the change of the residual stream after block l from the previous token: |x(t) - x(t-1)|",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), section 3",
};

pub(crate) fn build(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::step(&SPEC, TapPoint::ResidPost, Reduce::StepNorm, at)
}
