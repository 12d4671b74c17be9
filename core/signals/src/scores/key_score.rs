//! Scores from the keys held. They need nothing recorded.
//!
//! ```text
//! k-norm(j)   = - |k_j|
//! key-diff(j) = - cos(k_j, a)        a = mean over the held tokens i of k_i / |k_i|
//! ```
//!
//! with `k_j` the key after rotation, for each layer and KV head. A kept set that several heads or layers share has the mean
//! of their scores. A key of length zero has the cosine 0.
//!
//! Cost: `O(H_kv n D)` a layer when asked; state: none.
//!
//! # References
//! K-norm: Devoto et al. 2024, arXiv 2406.11430. `KeyDiff`: arXiv 2504.15364. Both as `KnormPress` and `KeyDiffPress` of
//! NVIDIA's kvpress have them.

use epikv_model::cache::RowCache;

use super::row::ScoreRow;
use super::score::{Need, Score, ScoreSpec};
use crate::error::Result;
use crate::formulas::direction::Directions;
use crate::formulas::numbers::norm;
use crate::taps::held::{Held, by_set};

pub(crate) static NORM: ScoreSpec = ScoreSpec {
    name: "k-norm",
    doc: "Negative L2 norm of the key",
    source: "K-norm (arXiv 2406.11430), as kvpress `KnormPress`",
    needs: &[Need::Keys],
    ..ScoreSpec::BLANK
};

pub(crate) static DIFFERENCE: ScoreSpec = ScoreSpec {
    name: "key-diff",
    doc: "Negative cosine of the key and the mean direction of the keys held",
    source: "KeyDiff (arXiv 2504.15364), as kvpress `KeyDiffPress`",
    needs: &[Need::Keys],
    ..ScoreSpec::BLANK
};

/// The rows of the table.
pub(crate) const NORM_ROW: ScoreRow = ScoreRow::plain(&NORM, |_| Ok(Box::new(KeyScore::Norm)));
pub(crate) const DIFFERENCE_ROW: ScoreRow = ScoreRow::plain(&DIFFERENCE, |_| Ok(Box::new(KeyScore::Difference)));

/// A score by keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyScore {
    /// Short keys are kept.
    Norm,
    /// Keys that point away from the mean direction are kept.
    Difference,
}

impl KeyScore {
    /// The scores of one head.
    fn of_head(self, held: Held<'_>) -> Vec<f64> {
        let keys = || (0..held.len()).map(|place| held.key(place));
        if self == Self::Norm {
            return keys().map(|key| -norm(key)).collect();
        }
        let mut directions = Directions::default();
        keys().for_each(|key| directions.add(key));
        let mean = directions.mean();
        keys().map(|key| -mean.cosine(key).unwrap_or(0.0)).collect()
    }
}

impl Score for KeyScore {
    fn spec(&self) -> &'static ScoreSpec {
        match self {
            Self::Norm => &NORM,
            Self::Difference => &DIFFERENCE,
        }
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        by_set(cache, |_, held| self.of_head(held))
    }
}
