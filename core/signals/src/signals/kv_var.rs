//! Variance over the channels of a token's own key or value.
//!
//! ```text
//! v_l(t) = 1/H_kv sum_h  1/(D-1) sum_d (x_(h,d)(t) - mean_d x_(h,d)(t))^2
//! ```
//!
//! with `x` the key of layer `l` after rotation, as it is cached, the key before rotation, or the value. The number belongs
//! to the token itself: it is known as soon as the token is fed and never changes. A rotation keeps the sum of squares and
//! moves only the mean over channels, so both key columns must nearly agree.
//!
//! Cost: `O(H_kv D)` a token, on the device; `H_kv` numbers leave it.

use epikv_model::taps::{Reduce, TapPoint};

use super::per_layer::{At, PerLayer};
use super::signal::{Signal, SignalSpec};
use crate::error::Result;

pub(crate) static KEY: SignalSpec = SignalSpec {
    name: "kv_key_var",
    doc: "Unbiased variance over the channels of the token's key after rotation at layer l, mean over KV heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), section 3; `kv_key_var` in its authors' code, which is the mean over layers",
};

pub(crate) static KEY_PREROPE: SignalSpec = SignalSpec {
    name: "kv_key_var_prerope",
    doc: "Unbiased variance over the channels of the token's key before rotation at layer l, mean over KV heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), appendix 10; `kv_key_var_preRoPE` in its authors' code is the mean over layers",
};

pub(crate) static VALUE: SignalSpec = SignalSpec {
    name: "kv_val_var",
    doc: "Unbiased variance over the channels of the token's value at layer l, mean over KV heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), section 3; `kv_val_var` in its authors' code, which is the mean over layers",
};

pub(crate) fn key(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_mean(&KEY, TapPoint::KeyPostRope, Reduce::Variance, at)
}

pub(crate) fn key_prerope(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_mean(&KEY_PREROPE, TapPoint::KeyPreRope, Reduce::Variance, at)
}

pub(crate) fn value(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_mean(&VALUE, TapPoint::Value, Reduce::Variance, at)
}
