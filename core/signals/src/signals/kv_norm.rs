//! L2 norm of a token's own key or value: `1/H_kv sum_h |x_h(t)|_2` at layer `l`.
//!
//! A rotation keeps the norm, so the columns of keys before and after it agree but for rounding.
//!
//! Cost: `O(H_kv D)` a token, on the device; `H_kv` numbers leave it.

use epikv_model::taps::{Reduce, TapPoint};

use super::per_layer::{At, PerLayer};
use super::signal::{Signal, SignalSpec};
use crate::error::Result;

pub(crate) static KEY: SignalSpec = SignalSpec {
    name: "kv_key_norm",
    doc: "L2 norm of the token's key after rotation at layer l, mean over KV heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), appendix A; its negative is the score of K-norm (arXiv 2406.11430)",
};

pub(crate) static KEY_PREROPE: SignalSpec = SignalSpec {
    name: "kv_key_norm_prerope",
    doc: "L2 norm of the token's key before rotation at layer l, mean over KV heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), appendix 10; `kv_key_norm_preRoPE` in its authors' code is the mean over layers",
};

pub(crate) static VALUE: SignalSpec = SignalSpec {
    name: "kv_val_norm",
    doc: "L2 norm of the token's value at layer l, mean over KV heads",
    unit: "1",
    source: "VaSE, as a criterion of its value reserve beside the range",
};

pub(crate) fn key(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_mean(&KEY, TapPoint::KeyPostRope, Reduce::Norm, at)
}

pub(crate) fn key_prerope(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_mean(&KEY_PREROPE, TapPoint::KeyPreRope, Reduce::Norm, at)
}

pub(crate) fn value(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_mean(&VALUE, TapPoint::Value, Reduce::Norm, at)
}
