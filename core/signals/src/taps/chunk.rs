//! The tokens of one row in what a forward pass recorded.

use std::ops::Range;

use epikv_model::taps::{HeadObservation, LogitTap, Reduce, TapPoint, Taps};

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

    /// Steps from each token's predecessor under a step reduction, `[T]`; null where there is none or it is not finite.
    ///
    /// # Errors
    /// If the pass did not record them, or did not have these tokens; `signal` names who asked.
    pub fn steps(
        &self,
        signal: &'static str,
        point: TapPoint,
        reduce: Reduce,
    ) -> Result<impl ExactSizeIterator<Item = Option<f32>> + use<'t>> {
        let all = self.taps.steps(point, reduce).ok_or(Error::NotRecorded { signal, what: words(reduce), point })?;
        Ok(self.own(signal, all, 1)?.iter().map(|step| step.filter(|g| g.is_finite())))
    }

    /// A reduction of the logits of each token, `[T]`; null where undefined or not finite.
    ///
    /// # Errors
    /// As [`Chunk::steps`].
    pub fn logits(&self, signal: &'static str, tap: LogitTap) -> Result<Vec<Option<f32>>> {
        let all = self.taps.logits(tap).ok_or(Error::NoLogits { signal, tap })?;
        Ok(self.own(signal, all, 1)?.iter().map(|value| value.filter(|v| v.is_finite())).collect())
    }

    /// One number a token from what was recorded of it, `[T]`; null where it is not finite.
    ///
    /// `of` gets the recorded values of one token: `H` where a `[T, H, D]` point is reduced over its channels, one where a
    /// `[T, d]` point is.
    ///
    /// # Errors
    /// As [`Chunk::steps`].
    pub fn each(
        &self,
        signal: &'static str,
        point: TapPoint,
        reduce: Reduce,
        of: impl Fn(&[f32]) -> f64,
    ) -> Result<Vec<Option<f32>>> {
        self.lend(signal, point, reduce, |tokens, width| {
            let finite = |value: f64| Some(value as f32).filter(|v| v.is_finite());
            tokens.chunks_exact(width).map(|token| finite(of(token))).collect()
        })
    }

    /// The sum over heads of a reduction over the channels of a `[T, H, D]` point, `[T]`, and how many heads there are.
    ///
    /// # Errors
    /// As [`Chunk::steps`].
    pub(crate) fn head_sums(&self, signal: &'static str, point: TapPoint, reduce: Reduce) -> Result<(Vec<f64>, usize)> {
        self.lend(signal, point, reduce, |all, n_heads| {
            let sum = |of_token: &[f32]| of_token.iter().map(|&v| f64::from(v)).sum::<f64>();
            (all.chunks_exact(n_heads).map(sum).collect(), n_heads)
        })
    }

    /// Lends what was recorded of the own tokens, row-major, with the number of values of a token.
    ///
    /// # Errors
    /// As [`Chunk::steps`].
    pub fn lend<R>(
        &self,
        signal: &'static str,
        point: TapPoint,
        reduce: Reduce,
        f: impl FnOnce(&[f32], usize) -> R,
    ) -> Result<R> {
        let missing = || Error::NotRecorded { signal, what: words(reduce), point };
        let width = self.taps.get(point, reduce).ok_or_else(missing)?.dims()[1..].iter().product::<usize>().max(1);
        let lent = self.taps.values(point, reduce, |all| self.own(signal, all, width).map(|own| f(own, width)))?;
        lent.ok_or_else(missing)?
    }

    /// Channels of a head at a `[T, H, D]` point that was recorded in full.
    ///
    /// # Errors
    /// As [`Chunk::steps`].
    pub(crate) fn head_dim(&self, signal: &'static str, point: TapPoint) -> Result<usize> {
        let full = self.taps.get(point, Reduce::Full);
        let missing = Error::NotRecorded { signal, what: words(Reduce::Full), point };
        full.and_then(|tensor| tensor.dims().last().copied()).ok_or(missing)
    }

    /// The values of the own tokens, `width` each, among those of the pass.
    fn own<'a, T>(&self, signal: &'static str, all: &'a [T], width: usize) -> Result<&'a [T]> {
        let outside = || Error::ChunkOutside { signal, tokens: self.tokens.clone(), n_recorded: all.len() / width };
        all.get(self.tokens.start * width..self.tokens.end * width).ok_or_else(outside)
    }
}

/// What a reduction is called in messages.
fn words(reduce: Reduce) -> &'static str {
    match reduce {
        Reduce::Full => "values",
        Reduce::Norm => "norms",
        Reduce::Mean => "means",
        Reduce::Variance => "variances",
        Reduce::Range => "ranges",
        Reduce::StepNorm => "step norms",
        Reduce::StepCosine => "step cosines",
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
        let error = chunk.steps("hs_l2", TapPoint::ResidPost(2), Reduce::StepNorm).err().expect("nothing was recorded");
        assert_eq!(error.to_string(), "signal hs_l2: expected the step norms of ResidPost(2) among the taps, got none");
        let error = chunk.each("kv_key_var", TapPoint::KeyPostRope(1), Reduce::Variance, |_| 0.0);
        let error = error.expect_err("nothing was recorded");
        assert_eq!(
            error.to_string(),
            "signal kv_key_var: expected the variances of KeyPostRope(1) among the taps, got none"
        );
        let error = chunk.logits("entropy", LogitTap::Entropy).expect_err("nothing was recorded");
        assert_eq!(error.to_string(), "signal entropy: expected Entropy of the logits among the taps, got none");
    }
}
