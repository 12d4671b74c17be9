//! Range of the channels of a token's value: `1/H_kv sum_h (max_d v_(h,d)(t) - min_d v_(h,d)(t))` at layer `l`.
//!
//! Cost: `O(H_kv D)` a token, on the device; `H_kv` numbers leave it.

use epikv_model::taps::{Reduce, TapPoint};

use super::per_layer::{At, PerLayer};
use super::signal::{Signal, SignalSpec};
use crate::error::Result;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "kv_val_range",
    doc: "Largest less smallest channel of the token's value at layer l, mean over KV heads",
    unit: "1",
    source: "VaSE, the criterion of its value reserve",
};

pub(crate) fn build(at: At) -> Result<Box<dyn Signal>> {
    PerLayer::head_mean(&SPEC, TapPoint::Value, Reduce::Range, at)
}
