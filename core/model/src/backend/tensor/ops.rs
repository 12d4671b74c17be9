//! The operations between linear layers by the tensor library: computed in f32, returned in the number format of the
//! input.

use candle_core::{D, DType, Tensor};

use crate::error::Result;

/// `x / sqrt(mean(x^2) + eps) * weight` over the last axis, f32.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    let (x, weight) = (x.to_dtype(DType::F32)?, weight.to_dtype(DType::F32)?);
    let mean_square = x.sqr()?.mean_keepdim(D::Minus1)?;
    Ok(x.broadcast_div(&(mean_square + eps)?.sqrt()?)?.broadcast_mul(&weight)?)
}

/// Rotates `[T, H, D]` by the f32 angles of each token, `[T, D/2]`.
pub(crate) fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let dtype = x.dtype();
    let x = x.to_dtype(DType::F32)?;
    let half = x.dim(D::Minus1)? / 2;
    let (a, b) = (x.narrow(D::Minus1, 0, half)?, x.narrow(D::Minus1, half, half)?);
    let (cos, sin) = (cos.unsqueeze(1)?, sin.unsqueeze(1)?);
    let first = (a.broadcast_mul(&cos)? - b.broadcast_mul(&sin)?)?;
    let second = (b.broadcast_mul(&cos)? + a.broadcast_mul(&sin)?)?;
    Ok(Tensor::cat(&[first, second], D::Minus1)?.to_dtype(dtype)?)
}

/// `silu(gate) * up`, from `[T, 2F]` to `[T, F]`.
pub(crate) fn gated(gate_up: &Tensor) -> Result<Tensor> {
    let dtype = gate_up.dtype();
    let gate_up = gate_up.to_dtype(DType::F32)?;
    let f = gate_up.dim(D::Minus1)? / 2;
    let gate = gate_up.narrow(D::Minus1, 0, f)?;
    Ok((gate.silu()? * gate_up.narrow(D::Minus1, f, f)?)?.to_dtype(dtype)?)
}

/// Rows or batches of `a` times `b`, f32. The library has no product of `bfloat16` on the CPU, so numbers of two bytes are
/// widened there.
pub(crate) fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.device().is_cpu() {
        return Ok(a.to_dtype(DType::F32)?.matmul(&b.to_dtype(DType::F32)?)?);
    }
    Ok(a.matmul(b)?.to_dtype(DType::F32)?)
}
