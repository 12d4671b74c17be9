//! L2 norm of the residual stream: `|x_{l+1}(t)|_2`, after block `l` and before the final norm.
//!
//! **Differs from the published runs in:** they have it at the last layer alone, and there after the final norm, which
//! takes most of its scale away.
//!
//! Cost: `O(d)` a token, on the device; one number leaves it.

use epikv_model::taps::{Reduce, TapPoint};

use super::per_layer::{At, PerLayer};
use super::signal::{Signal, SignalSpec};
use crate::error::Result;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "hs_norm",
    doc: "L2 norm of the residual stream after block l: |x(t)|",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), appendix A; `hs_norm` in its authors' code at the last layer",
};

pub(crate) fn build(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_mean(&SPEC, TapPoint::ResidPost, Reduce::Norm, at)
}
