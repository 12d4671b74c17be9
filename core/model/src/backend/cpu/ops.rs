//! The operations between linear layers by our kernels.

use candle_core::Tensor;
use epikv_kernels::{norm, pointwise, rope};
use rayon::prelude::*;

use super::elements::{from_rows, with_f32};
use crate::error::Result;

/// Below this many elements an operation stays on the calling thread: waking another one costs more.
const SERIAL_BELOW: usize = 1 << 16;

/// Fills `out` from the same rows of `x`, blocks of them on several threads where there are many: `f(first row, x, out)`.
fn by_rows(x: (&[f32], usize), out: (&mut [f32], usize), f: impl Fn(usize, &[f32], &mut [f32]) + Sync) {
    let ((x, x_width), (out, out_width)) = (x, out);
    let threads = rayon::current_num_threads();
    if threads == 1 || x.len() < SERIAL_BELOW {
        return f(0, x, out);
    }
    let rows = (x.len() / x_width).div_ceil(4 * threads);
    let blocks = x.par_chunks(rows * x_width).zip(out.par_chunks_mut(rows * out_width));
    blocks.enumerate().for_each(|(i, (x, out))| f(i * rows, x, out));
}

/// Some columns of a matrix `[T, N]`, `[T, n]` without gaps.
pub(crate) fn columns(x: &Tensor, first: usize, n: usize) -> Result<Tensor> {
    let (rows, all) = x.dims2()?;
    let mut out = vec![0.0; rows * n];
    with_f32(x, |x| {
        by_rows((x, all), (&mut out, n), |_, x, out| {
            for (row, out) in x.chunks_exact(all).zip(out.chunks_exact_mut(n)) {
                out.copy_from_slice(&row[first..first + n]);
            }
        });
    })?;
    from_rows(out, &[rows, n])
}

/// Root-mean-square norm over the last axis.
pub(crate) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    let mut out = vec![0.0; x.elem_count()];
    with_f32(x, |x| {
        with_f32(weight, |w| {
            let d = w.len();
            by_rows((x, d), (&mut out, d), |_, x, out| norm::rms_norm(x, w, eps as f32, out));
        })
    })??;
    from_rows(out, x.dims())
}

/// Rotates `[T, H, D]` by the angles of each token, `[T, D/2]`.
pub(crate) fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let (_, heads, d) = x.dims3()?;
    let (width, half) = (heads * d, d / 2);
    let mut out = vec![0.0; x.elem_count()];
    with_f32(x, |x| {
        with_f32(cos, |cos| {
            with_f32(sin, |sin| {
                by_rows((x, width), (&mut out, width), |first, x, out| {
                    out.copy_from_slice(x);
                    let angles = cos.chunks_exact(half).zip(sin.chunks_exact(half)).skip(first);
                    for (token, (cos, sin)) in out.chunks_exact_mut(width).zip(angles) {
                        rope::rotate(token, cos, sin);
                    }
                });
            })
        })
    })???;
    from_rows(out, x.dims())
}

/// `silu(gate) * up`, from `[T, 2F]` with the gate in the first half of each row, to `[T, F]`.
pub(crate) fn gated(gate_up: &Tensor) -> Result<Tensor> {
    let (rows, both) = gate_up.dims2()?;
    let f = both / 2;
    let mut out = vec![0.0; rows * f];
    with_f32(gate_up, |all| {
        by_rows((all, both), (&mut out, f), |_, all, out| {
            for (row, out) in all.chunks_exact(both).zip(out.chunks_exact_mut(f)) {
                pointwise::silu_mul(&row[..f], &row[f..], out);
            }
        });
    })?;
    from_rows(out, &[rows, f])
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::backend::tensor::ops as reference;

    #[test]
    fn threads_change_no_bit() -> Result<()> {
        let (rows, d) = (301, 256);
        let (x, w) = (random(&[rows, d], 1), random(&[d], 2));
        let (cos, sin) = (random(&[rows, 16], 3), random(&[rows, 16], 4));
        let all = |threads: usize| -> Result<Vec<Vec<u32>>> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("pool");
            pool.install(|| {
                let heads = x.reshape((rows, 8, 32))?;
                let results = [rms_norm(&x, &w, 1e-5)?, rotate(&heads, &cos, &sin)?, gated(&x)?, columns(&x, 7, 40)?];
                results.iter().map(|t| with_f32(t, |t| t.iter().map(|v| v.to_bits()).collect())).collect()
            })
        };
        assert!(rows * d > SERIAL_BELOW, "the case is too small to be spread");
        assert_eq!(all(1)?, all(3)?);
        Ok(())
    }

    fn random(shape: &[usize], seed: u32) -> Tensor {
        let n: usize = shape.iter().product();
        let v = (0..n as u32).map(|i| ((i.wrapping_mul(2_654_435_761) ^ seed) % 2003) as f32 / 1000.0 - 1.0).collect();
        from_rows(v, shape).expect("shape")
    }

    fn close(a: &Tensor, b: &Tensor) {
        let worst = (a - b).and_then(|d| d.abs()?.flatten_all()?.max(0)?.to_scalar::<f32>()).expect("same shape");
        assert!(worst < 1e-6, "{worst:e}");
    }

    #[test]
    fn kernels_agree_with_the_tensor_library() -> Result<()> {
        let (x, w) = (random(&[7, 24], 1), random(&[24], 2));
        close(&rms_norm(&x, &w, 1e-5)?, &reference::rms_norm(&x, &w, 1e-5)?);
        let (x, cos, sin) = (random(&[7, 3, 8], 3), random(&[7, 4], 4), random(&[7, 4], 5));
        close(&rotate(&x, &cos, &sin)?, &reference::rotate(&x, &cos, &sin)?);
        close(&gated(&random(&[7, 24], 6))?, &reference::gated(&random(&[7, 24], 6))?);
        Ok(())
    }

    #[test]
    fn a_narrowed_tensor_lends_its_own_part() -> Result<()> {
        let x = Tensor::arange(0.0_f32, 6.0, &Device::Cpu)?.narrow(0, 2, 3)?;
        assert_eq!(with_f32(&x, <[f32]>::to_vec)?, [2.0, 3.0, 4.0]);
        Ok(())
    }
}
