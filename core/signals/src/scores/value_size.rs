//! Sizes of the values of the tokens held, by which a part of a budget can be reserved.
//!
//! ```text
//! range     max_d v_d(j) - min_d v_d(j)
//! variance  1/(D-1) sum over d of (v_d(j) - mean_d v_d(j))^2
//! l2        sqrt(sum over d of v_d(j)^2)
//! ```
//!
//! for each layer and KV head; a kept set that several share has the mean. Cost: `O(H_kv n D)` a layer when asked.
//!
//! # References
//! `VaSE` (arXiv 2606.03928), section 3: tokens of large value range must not be lost; the other two are its variants.

use epikv_model::cache::RowCache;

use super::row::ScoreRow;
use super::score::{Need, Score, ScoreSpec};
use crate::error::Result;
use crate::taps::held::by_set;

/// What is measured of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueSize {
    /// Largest less smallest channel.
    Range,
    /// Unbiased variance over channels.
    Variance,
    /// L2 norm.
    L2,
}

impl ValueSize {
    /// The size of one value, `[D]`.
    pub fn of(self, value: &[f32]) -> f64 {
        let all = value.iter().map(|&x| f64::from(x));
        match self {
            Self::Range => {
                let ends = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)));
                ends.1 - ends.0
            }
            Self::Variance => {
                let n = value.len() as f64;
                let mean = all.clone().sum::<f64>() / n;
                all.map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)
            }
            Self::L2 => all.map(|x| x * x).sum::<f64>().sqrt(),
        }
    }
}

/// The sizes of the values that each kept set of a cache holds, in order of positions.
///
/// # Errors
/// If the values are not on the CPU.
pub fn value_sizes(cache: &RowCache, size: ValueSize) -> Result<Vec<Vec<f32>>> {
    by_set(cache, |_, held| (0..held.len()).map(|place| size.of(held.value(place))).collect())
}

/// The ranges of the values that each kept set of a cache holds, in order of positions.
///
/// # Errors
/// If the values are not on the CPU.
pub fn value_ranges(cache: &RowCache) -> Result<Vec<Vec<f32>>> {
    value_sizes(cache, ValueSize::Range)
}

pub(crate) static SPEC: ScoreSpec = ScoreSpec {
    name: "small-values",
    doc: "Negative range of the value over its channels: the largest are evicted first",
    source: "VaSE (arXiv 2606.03928), section 3, the reverse of its criterion",
    needs: &[Need::Values],
    ..ScoreSpec::BLANK
};

#[derive(Debug)]
struct SmallValues;

/// The row of the table.
pub(crate) const ROW: ScoreRow = ScoreRow::plain(&SPEC, |_| Ok(Box::new(SmallValues)));

impl Score for SmallValues {
    fn spec(&self) -> &'static ScoreSpec {
        &SPEC
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        let mut ranges = value_ranges(cache)?;
        ranges.iter_mut().flatten().for_each(|range| *range = -*range);
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_value() {
        let value = [1.0, -2.0, 3.0, 0.0];
        assert!((ValueSize::Range.of(&value) - 5.0).abs() < 1e-12);
        // numpy.var([1, -2, 3, 0], ddof=1)
        assert!((ValueSize::Variance.of(&value) - 4.333_333_333_333_333).abs() < 1e-12);
        assert!((ValueSize::L2.of(&value) - 14.0_f64.sqrt()).abs() < 1e-12);
    }
}
