//! Value ranges of the tokens held, for which `VaSE` reserves a part of its budget.
//!
//! ```text
//! r(j) = max_d v_d(j) - min_d v_d(j)
//! ```
//!
//! for each layer and KV head; a kept set that several share has the mean. Cost: `O(H_kv n D)` a layer when asked.
//!
//! # References
//! `VaSE` (arXiv 2606.03928), section 3: tokens of large value range must not be lost.

use epikv_model::cache::RowCache;

use crate::error::Result;
use crate::taps::held::by_set;

/// The ranges of the tokens that each kept set of a cache holds, in order of positions.
///
/// # Errors
/// If the values are not on the CPU.
pub fn value_ranges(cache: &RowCache) -> Result<Vec<Vec<f32>>> {
    by_set(cache, |_, held| {
        let range = |value: &[f32]| {
            let ends = value.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(lo, hi), &x| (lo.min(x), hi.max(x)));
            f64::from(ends.1) - f64::from(ends.0)
        };
        (0..held.len()).map(|place| range(held.value(place))).collect()
    })
}
