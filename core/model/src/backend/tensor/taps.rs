//! Reductions on the device, so that only scalars cross to the host.

use candle_core::{D, DType, Tensor};

use crate::error::Result;
use crate::taps::point::Reduce;

/// Norms below this count as this much, so that a zero vector has a direction: 0 similarity with everything.
const SMALLEST_NORM: f64 = 1e-8;

/// A logit so far below the best has no weight in f32, and times its weight is still zero.
const LOWEST: f64 = -1e4;

/// A tensor reduced over its last axis, f32.
pub(super) fn reduced(x: &Tensor, how: Reduce) -> Result<Tensor> {
    let x = x.to_dtype(DType::F32)?;
    Ok(match how {
        Reduce::Full | Reduce::StepNorm | Reduce::StepCosine => x,
        Reduce::Norm => norm(&x)?,
        Reduce::Mean => x.mean(D::Minus1)?,
        Reduce::Variance => x.var(D::Minus1)?,
        Reduce::Range => (x.max(D::Minus1)? - x.min(D::Minus1)?)?,
    })
}

/// The steps between neighbouring rows of `[n, d]`, `[n - 1]`.
pub(super) fn steps(x: &Tensor, how: Reduce) -> Result<Tensor> {
    let n = x.dim(0)? - 1;
    let (now, then) = (x.narrow(0, 1, n)?, x.narrow(0, 0, n)?);
    if how != Reduce::StepCosine {
        return norm(&(now - then)?);
    }
    let length = |x: &Tensor| norm(x)?.maximum(SMALLEST_NORM).map_err(Into::into) as Result<Tensor>;
    let lengths = (length(&now)? * length(&then)?)?;
    let cosine = ((now * then)?.sum(D::Minus1)? / lengths)?.clamp(-1.0, 1.0)?;
    Ok(cosine.affine(-1.0, 1.0)?)
}

/// Entropy, margin and surprisal of the token in `next`, of each row of f32 logits `[n, vocab]`: `[3, n]`.
pub(super) fn distributions(logits: &Tensor, next: &[u32]) -> Result<Tensor> {
    let (n, vocab) = logits.dims2()?;
    let best = logits.argmax_keepdim(1)?; // [n, 1]
    let top = logits.gather(&best, 1)?;
    let below = logits.broadcast_sub(&top)?.maximum(LOWEST)?;
    let weights = below.exp()?;
    let sum = weights.sum(1)?;
    let log_sum = sum.log()?;
    let entropy = (&log_sum - ((weights * &below)?.sum(1)? / &sum)?)?.maximum(0.0)?;
    // The second largest is the largest once the best is hidden.
    let ids = Tensor::arange(0, vocab as u32, logits.device())?.unsqueeze(0)?;
    let hidden = ids.broadcast_eq(&best)?;
    let lowest = Tensor::full(f32::NEG_INFINITY, (n, vocab), logits.device())?;
    let second = hidden.where_cond(&lowest, logits)?.max(1)?;
    let margin = (top.squeeze(1)? - second)?;
    let of_next = below.gather(&Tensor::from_slice(next, (n, 1), logits.device())?, 1)?.squeeze(1)?;
    let surprisal = (log_sum - of_next)?.maximum(0.0)?;
    Ok(Tensor::stack(&[entropy, margin, surprisal], 0)?)
}

/// L2 norm over the last axis.
fn norm(x: &Tensor) -> Result<Tensor> {
    Ok(x.sqr()?.sum(D::Minus1)?.sqrt()?)
}
