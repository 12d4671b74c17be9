//! The tokens of one row in what a forward pass recorded.

use std::ops::Range;

use epikv_model::taps::{Reduce, TapPoint, Taps};

use crate::error::{Error, Result};

/// Consecutive tokens of one sequence, as part of a packed pass.
///
/// A pass may hold several rows; `tokens` are the places of one of them in the packed order, `[sum of T]`.
#[derive(Debug, Clone)]
pub struct Chunk<'t> {
    taps: &'t Taps,
    tokens: Range<usize>,
}

impl<'t> Chunk<'t> {
    /// The tokens `tokens` of the packed pass that gave `taps`.
    pub fn new(taps: &'t Taps, tokens: Range<usize>) -> Self {
        Self { taps, tokens }
    }

    /// Tokens of the chunk.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether it has no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Norms of the step from each token's predecessor, `[T]`; null where there is none or the norm is not finite.
    ///
    /// # Errors
    /// If the pass did not record them, or did not have these tokens; `signal` names who asked.
    pub fn step_norms(
        &self,
        signal: &'static str,
        point: TapPoint,
    ) -> Result<impl ExactSizeIterator<Item = Option<f32>> + use<'t>> {
        let all = self.taps.step_norms(point).ok_or(Error::NotRecorded { signal, what: "step norms", point })?;
        let own = all.get(self.tokens.clone()).ok_or_else(|| Error::ChunkOutside {
            signal,
            tokens: self.tokens.clone(),
            n_recorded: all.len(),
        })?;
        Ok(own.iter().map(|norm| norm.filter(|g| g.is_finite())))
    }

    /// Unbiased variance over the `D` channels of each token and head, mean over the heads, `[T]`; null where that is
    /// not finite.
    ///
    /// # Errors
    /// As [`Chunk::step_norms`].
    pub fn mean_variances(&self, signal: &'static str, point: TapPoint) -> Result<Vec<Option<f32>>> {
        let missing = Error::NotRecorded { signal, what: "variances", point };
        let all = self.taps.get(point, Reduce::Variance).ok_or(missing)?; // [sum of T, H_kv]
        let n_recorded = all.dims().first().copied().unwrap_or(0);
        let Range { start, end } = self.tokens.clone();
        if start > end || end > n_recorded {
            return Err(Error::ChunkOutside { signal, tokens: self.tokens.clone(), n_recorded });
        }
        let own = all.narrow(0, start, end - start).and_then(|own| own.to_vec2::<f32>());
        let own = own.map_err(|source| Error::Model { signal, source: Box::new(source.into()) })?;
        let mean = |heads: &Vec<f32>| heads.iter().map(|&v| f64::from(v)).sum::<f64>() / heads.len() as f64;
        Ok(own.iter().map(|heads| Some(mean(heads) as f32).filter(|v| v.is_finite())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tap_names_signal_and_point() {
        let taps = Taps::default();
        let chunk = Chunk::new(&taps, 0..3);
        assert_eq!((chunk.len(), chunk.is_empty()), (3, false));
        let error = chunk.step_norms("hs_l2", TapPoint::ResidPost(2)).err().expect("nothing was recorded");
        assert_eq!(error.to_string(), "signal hs_l2: expected the step norms of ResidPost(2) among the taps, got none");
        let error = chunk.mean_variances("kv_key_var", TapPoint::KeyPostRope(1)).expect_err("nothing was recorded");
        assert_eq!(
            error.to_string(),
            "signal kv_key_var: expected the variances of KeyPostRope(1) among the taps, got none"
        );
    }
}
