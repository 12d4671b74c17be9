//! Norm and gate with their gradients, row by row.

use epikv_kernels::{norm, pointwise};
use epikv_model::Tensor;
use epikv_model::autograd::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Storage, bail};

/// The elements of a contiguous f32 tensor.
pub(crate) fn slice<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let all = storage.as_slice::<f32>()?;
    match layout.contiguous_offsets() {
        Some((from, to)) => Ok(&all[from..to]),
        None => bail!("expected a contiguous tensor, got strides {:?}", layout.stride()),
    }
}

/// Runs `f` on the elements of a tensor.
pub(crate) fn read<R>(tensor: &Tensor, f: impl FnOnce(&[f32]) -> R) -> Result<R> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(cpu) => Ok(f(slice(cpu, layout)?)),
        _ => bail!("training runs on the CPU only"),
    }
}

/// `exp(x)` for `x <= 0`, to about `3e-7` relative; below -87 it stays at `exp(-87)`. Without branches and fused
/// operations, so that it becomes vector code on any machine.
#[inline]
fn exp_of_negative(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer that the low bits hold
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let mut p = 1.388_888_9e-3_f32;
    for c in [8.333_334e-3, 4.166_666_8e-2, 1.666_666_7e-1, 0.5, 1.0, 1.0_f32] {
        p = p * r + c;
    }
    p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)
}

/// `1 / (1 + exp(-x))`.
#[inline]
fn sigmoid(x: f32) -> f32 {
    let e = exp_of_negative(-x.abs());
    let s = 1.0 / (1.0 + e);
    if x < 0.0 { e * s } else { s }
}

/// Root-mean-square norm over the last axis: `y = x r w`, `r = (mean(x^2) + eps)^(-1/2)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RmsNorm {
    pub(crate) eps: f32,
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, w: &CpuStorage, lw: &Layout) -> Result<(CpuStorage, Shape)> {
        let mut out = vec![0.0; lx.shape().elem_count()];
        norm::rms_norm(slice(x, lx)?, slice(w, lw)?, self.eps, &mut out);
        Ok((CpuStorage::F32(out), lx.shape().clone()))
    }

    /// `dx = r (w dy - x r^2 mean(w dy x))`, `dw = sum of dy x r over rows`.
    fn bwd(&self, x: &Tensor, w: &Tensor, _: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let d = w.elem_count();
        let (mut dx, mut dw) = (vec![0.0_f32; x.elem_count()], vec![0.0_f32; d]);
        let eps = self.eps;
        read(x, |x| {
            read(w, |w| {
                read(dy, |dy| {
                    let rows = x.chunks_exact(d).zip(dy.chunks_exact(d)).zip(dx.chunks_exact_mut(d));
                    for ((x, dy), dx) in rows {
                        norm_gradient(x, w, dy, eps, dx, &mut dw);
                    }
                })
            })
        })???;
        let dx = Tensor::from_vec(dx, x.shape(), x.device())?;
        Ok((Some(dx), Some(Tensor::from_vec(dw, d, w.device())?)))
    }
}

fn norm_gradient(x: &[f32], w: &[f32], dy: &[f32], eps: f32, dx: &mut [f32], dw: &mut [f32]) {
    let mut squares = [0.0_f32; 8];
    let mut products = [0.0_f32; 8];
    for ((x, w), dy) in x.chunks(8).zip(w.chunks(8)).zip(dy.chunks(8)) {
        for ((((s, p), &x), &w), &dy) in squares.iter_mut().zip(&mut products).zip(x).zip(w).zip(dy) {
            *s += x * x;
            *p += w * dy * x;
        }
    }
    let n = x.len() as f32;
    let r = 1.0 / (squares.iter().sum::<f32>() / n + eps).sqrt();
    let pull = r * r * products.iter().sum::<f32>() / n;
    for ((((dx, dw), &x), &w), &dy) in dx.iter_mut().zip(dw).zip(x).zip(w).zip(dy) {
        *dx = r * (w * dy - x * pull);
        *dw += dy * x * r;
    }
}

/// `silu(gate) * up`, from `[T, 2F]` with the gate first to `[T, F]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gated;

impl CustomOp1 for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, both) = layout.shape().dims2()?;
        let f = both / 2;
        let mut out = vec![0.0; rows * f];
        for (row, out) in slice(storage, layout)?.chunks_exact(both).zip(out.chunks_exact_mut(f)) {
            pointwise::silu_mul(&row[..f], &row[f..], out);
        }
        Ok((CpuStorage::F32(out), (rows, f).into()))
    }

    /// With `s = sigmoid(g)`: `dg = dy u s (1 + g (1 - s))`, `du = dy g s`.
    fn bwd(&self, arg: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let f = arg.dim(1)? / 2;
        let mut out = vec![0.0; arg.elem_count()];
        read(arg, |x| {
            read(dy, |dy| {
                for ((x, dy), out) in x.chunks_exact(2 * f).zip(dy.chunks_exact(f)).zip(out.chunks_exact_mut(2 * f)) {
                    let ((gate, up), (d_gate, d_up)) = (x.split_at(f), out.split_at_mut(f));
                    let rows = gate.iter().zip(up).zip(dy).zip(d_gate.iter_mut().zip(d_up));
                    for (((&g, &u), &dy), (d_gate, d_up)) in rows {
                        let s = sigmoid(g);
                        *d_gate = dy * u * s * (1.0 + g * (1.0 - s));
                        *d_up = dy * g * s;
                    }
                }
            })
        })??;
        Ok(Some(Tensor::from_vec(out, arg.shape(), arg.device())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_of_negative_is_close() {
        for i in 0..87_000 {
            let x = -i as f32 / 1000.0;
            let want = f64::from(x).exp();
            assert!((f64::from(exp_of_negative(x)) / want - 1.0).abs() < 1e-6, "{x}");
        }
        assert!(exp_of_negative(f32::NEG_INFINITY) < 1e-37);
        assert!((sigmoid(-3.0) + sigmoid(3.0) - 1.0).abs() < 1e-6);
    }
}
