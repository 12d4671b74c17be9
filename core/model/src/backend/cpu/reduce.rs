//! Reductions of a tapped tensor over its last axis, row by row, so that only scalars are kept.

use candle_core::Tensor;
use epikv_kernels::lanes::dot;

use super::elements::{from_rows, with_f32};
use crate::error::Result;
use crate::taps::point::Reduce;

/// The tensor in the form asked for. Steps between tokens are not made here.
pub(super) fn reduced(x: &Tensor, reduce: Reduce) -> Result<Tensor> {
    let of: fn(&[f32]) -> f32 = match reduce {
        Reduce::Full | Reduce::StepNorm | Reduce::StepCosine => return Ok(x.clone()),
        Reduce::Norm => |v| dot(v, v).sqrt(),
        Reduce::Mean => mean,
        Reduce::Variance => variance,
        Reduce::Range => range,
    };
    let (outer, d) = x.dims().split_at(x.dims().len() - 1);
    from_rows(with_f32(x, |x| x.chunks_exact(d[0]).map(of).collect())?, outer)
}

/// Sums in f64: channels are many and may cancel.
fn mean(v: &[f32]) -> f32 {
    (v.iter().map(|&x| f64::from(x)).sum::<f64>() / v.len() as f64) as f32
}

/// Unbiased, in two passes.
fn variance(v: &[f32]) -> f32 {
    let mean = v.iter().map(|&x| f64::from(x)).sum::<f64>() / v.len() as f64;
    let squares: f64 = v.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
    (squares / (v.len() as f64 - 1.0)) as f32
}

/// Largest less smallest.
fn range(v: &[f32]) -> f32 {
    let (lo, hi) = v.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(lo, hi), &x| (lo.min(x), hi.max(x)));
    hi - lo
}

#[cfg(test)]
mod tests {
    use candle_core::D;

    use super::*;

    #[test]
    fn rows_agree_with_the_tensor_library() -> Result<()> {
        let all: Vec<f32> = (0..2 * 3 * 10).map(|i| ((i * 7919) % 2003) as f32 / 500.0 - 2.0).collect();
        let x = from_rows(all, &[2, 3, 10])?;
        let by_tensors = [
            (Reduce::Norm, x.sqr()?.sum(D::Minus1)?.sqrt()?),
            (Reduce::Mean, x.mean(D::Minus1)?),
            (Reduce::Variance, x.var(D::Minus1)?),
            (Reduce::Range, (x.max(D::Minus1)? - x.min(D::Minus1)?)?),
        ];
        for (reduce, want) in by_tensors {
            let worst = (reduced(&x, reduce)? - want)?.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()?;
            assert!(worst < 1e-5, "{reduce:?}: {worst:e}");
        }
        Ok(())
    }
}
