//! Change of direction of the residual stream from one token to the next, as a cosine distance.
//!
//! ```text
//! c_l(t) = 1 - cos(x_{l+1}(t), x_{l+1}(t-1))      norms clamped at 1e-8 from below, the cosine to [-1, 1]
//! ```
//!
//! in [0, 2], with `x` as in [`hs_l2`](super::hs_l2).
//!
//! **Differs from the published runs in:** as `hs_l2` does.
//!
//! Cost: `O(d)` a token, on the device; one number leaves it.

use epikv_model::taps::{Reduce, TapPoint};

use super::per_layer::{At, PerLayer};
use super::signal::{Signal, SignalSpec};
use crate::error::Result;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "hs_cos",
    doc: "Cosine distance of the residual stream after block l to that of the previous token: 1 - cos(x(t), x(t-1))",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), section 3; `hs_cos_dist` in its authors' code",
};

pub(crate) fn build(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::step(&SPEC, TapPoint::ResidPost, Reduce::StepCosine, at)
}
