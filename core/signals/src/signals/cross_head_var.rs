//! Variance over KV heads of the mean of their key.
//!
//! ```text
//! c_l(t) = Var_h( 1/D sum_d k_(h,d)(t) )      unbiased, over the H_kv heads; undefined with a single one
//! ```
//!
//! with `k` the key of layer `l` after rotation.
//!
//! Cost: `O(H_kv D)` a token, on the device; `H_kv` numbers leave it.

use epikv_model::taps::{Reduce, TapPoint};

use super::per_layer::{At, PerLayer};
use super::signal::{Signal, SignalSpec};
use crate::error::Result;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "cross_head_var",
    doc: "Unbiased variance over KV heads of the mean over channels of the token's key at layer l",
    unit: "1",
    source: "`cross_head_var` in the code of EpiKV's authors (arXiv 2606.26472), which is the mean over layers",
};

pub(crate) fn build(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_variance(&SPEC, TapPoint::KeyPostRope, Reduce::Mean, at)
}
