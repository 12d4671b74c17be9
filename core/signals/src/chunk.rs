//! The tokens of one row in what a forward pass recorded.

use std::ops::Range;

use epikv_model::taps::{HeadObservation, Reduce, TapPoint, Taps};

use crate::error::{Error, Result};

/// Consecutive tokens of one sequence, as part of a packed pass.
///
/// A pass may hold several rows; `tokens` are the places of one of them in the packed order, `[sum of T]`.
#[derive(Debug, Clone)]
pub struct Chunk<'t> {
    taps: &'t Taps,
    tokens: Range<usize>,
    row: usize,
}

impl<'t> Chunk<'t> {
    /// The tokens `tokens` of the packed pass that gave `taps`, in its only or first row.
    pub fn new(taps: &'t Taps, tokens: Range<usize>) -> Self {
        Self { taps, tokens, row: 0 }
    }

    /// The same tokens as those of another row of the pass. Only what was observed of attention goes by rows.
    #[must_use]
    pub fn in_row(self, row: usize) -> Self {
        Self { row, ..self }
    }

    /// What was observed of the attention of a layer, by KV head.
    pub(crate) fn attention(&self, layer: usize) -> Option<&'t [HeadObservation]> {
        self.taps.attention(layer)?.get(self.row).map(Vec::as_slice)
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
        let what = "step norms";
        let all = self.taps.step_norms(point).ok_or(Error::NotRecorded { signal, what, point })?;
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
        let mut sums = vec![0.0; self.len()];
        let heads = self.add_variances(signal, point, &mut sums)?;
        Ok(sums.into_iter().map(|sum| Some((sum / heads as f64) as f32).filter(|mean| mean.is_finite())).collect())
    }

    /// Adds to `sums` `[T]` the variance over channels at each token, summed over the KV heads; returns their number.
    ///
    /// # Errors
    /// As [`Chunk::step_norms`].
    pub(crate) fn add_variances(&self, signal: &'static str, point: TapPoint, sums: &mut [f64]) -> Result<usize> {
        let what = "variances";
        let missing = || Error::NotRecorded { signal, what, point };
        let shape = self.taps.get(point, Reduce::Variance).ok_or_else(missing)?.dims();
        let (n_recorded, heads) = (shape[0], shape.iter().skip(1).product::<usize>());
        let outside = || Error::ChunkOutside { signal, tokens: self.tokens.clone(), n_recorded };
        let added = self.taps.values(point, Reduce::Variance, |all| {
            let own = all.get(self.tokens.start * heads..self.tokens.end * heads)?;
            for (sum, of_token) in sums.iter_mut().zip(own.chunks_exact(heads.max(1))) {
                *sum += of_token.iter().map(|&v| f64::from(v)).sum::<f64>();
            }
            Some(heads)
        })?;
        added.ok_or_else(missing)?.ok_or_else(outside)
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
