//! Rotation and causal attention of packed sequences as one operation with a gradient of its own.
//!
//! `[T, (H + 2 H_kv) D] -> [T, H D]`. Query heads that share a KV head are stacked, queries are taken in blocks of
//! [`BLOCK`], and each block sees the keys up to its own end. The gradient computes the probabilities again instead of
//! keeping them: with `P = softmax(Q K^T)`, `dV = P^T dO`, `dS = P (dO V^T - sum(dO O))`, `dQ = dS K`, `dK = dS^T Q`.

use std::sync::Arc;

use epikv_kernels::{pointwise, rope};
use epikv_model::autograd::{CpuStorage, CustomOp1, InplaceOp1, InplaceOp2, Layout, Result, Shape, bail};
use epikv_model::{Device, Tensor};

use crate::pointwise::{read, slice};

/// Queries of a head that are taken together.
const BLOCK: usize = 64;

/// Cosines and sines of positions `0..n`, `[n, D/2]` each.
#[derive(Debug)]
pub(crate) struct Angles {
    pub(crate) cos: Vec<f32>,
    pub(crate) sin: Vec<f32>,
}

/// The operation for one packed batch.
#[derive(Debug, Clone)]
pub(crate) struct CausalAttention {
    pub(crate) n_heads: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) head_dim: usize,
    /// Rows of each sequence.
    pub(crate) lengths: Arc<[usize]>,
    pub(crate) angles: Arc<Angles>,
}

impl CausalAttention {
    /// Columns of the input.
    fn width(&self) -> usize {
        (self.n_heads + 2 * self.n_kv_heads) * self.head_dim
    }

    /// Copies a head of one sequence, `[n, width]`, to `out`, `[n, D]`, rotated where it should be.
    fn gather(&self, rows: &[f32], width: usize, head: usize, rotated: bool, out: &mut Vec<f32>) {
        let d = self.head_dim;
        let first = out.len();
        for row in rows.chunks_exact(width) {
            out.extend_from_slice(&row[head * d..(head + 1) * d]);
        }
        if rotated {
            let angles = self.angles.cos.chunks_exact(d / 2).zip(self.angles.sin.chunks_exact(d / 2));
            for (token, (cos, sin)) in out[first..].chunks_exact_mut(d).zip(angles) {
                rope::rotate(token, cos, sin);
            }
        }
    }

    /// Undoes the rotation of a gradient `[n, D]`, scales it and adds it to a head of `[n, width]`.
    fn scatter(&self, gradient: &mut [f32], scale: f32, rotated: bool, head: usize, out: &mut [f32]) {
        let d = self.head_dim;
        let angles = self.angles.cos.chunks_exact(d / 2).zip(self.angles.sin.chunks_exact(d / 2));
        let rows = gradient.chunks_exact_mut(d).zip(out.chunks_exact_mut(self.width())).zip(angles);
        for ((from, to), (cos, sin)) in rows {
            if rotated {
                let back: Vec<f32> = sin.iter().map(|s| -s).collect();
                rope::rotate(from, cos, &back);
            }
            for (to, from) in to[head * d..(head + 1) * d].iter_mut().zip(from) {
                *to += scale * *from;
            }
        }
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }

    /// Heads of one sequence that share KV head `kv`.
    fn group(&self, rows: &[f32], kv: usize) -> Result<Group> {
        let (d, n) = (self.head_dim, rows.len() / self.width());
        let size = self.n_heads / self.n_kv_heads;
        let head = |head: usize, rotated: bool| {
            let mut out = Vec::with_capacity(n * d);
            self.gather(rows, self.width(), head, rotated, &mut out);
            out
        };
        let mut q: Vec<Vec<f32>> = (kv * size..(kv + 1) * size).map(|h| head(h, true)).collect();
        let scale = self.scale();
        q.iter_mut().flatten().for_each(|v| *v *= scale);
        Ok(Group {
            q,
            k: Tensor::from_vec(head(self.n_heads + kv, true), (n, d), &Device::Cpu)?,
            v: Tensor::from_vec(head(self.n_heads + self.n_kv_heads + kv, false), (n, d), &Device::Cpu)?,
            n,
            d,
        })
    }

    fn forward(&self, input: &[f32]) -> Result<Vec<f32>> {
        let (width, d, size) = (self.width(), self.head_dim, self.n_heads / self.n_kv_heads);
        let out_width = self.n_heads * d;
        let mut out = vec![0.0; input.len() / width * out_width];
        let mut at = 0;
        for &n in self.lengths.iter() {
            let rows = &input[at * width..(at + n) * width];
            for kv in 0..self.n_kv_heads {
                let group = self.group(rows, kv)?;
                for (first, end) in blocks(n) {
                    let mixed = group.probabilities(&group.queries(first, end)?, first, end)?;
                    let mixed = mixed.matmul(&group.v.narrow(0, 0, end)?)?; // [size * block, D]
                    read(&mixed, |mixed| {
                        for (i, from) in mixed.chunks_exact(d).enumerate() {
                            let (head, row) = (kv * size + i / (end - first), at + first + i % (end - first));
                            out[row * out_width + head * d..][..d].copy_from_slice(from);
                        }
                    })?;
                }
            }
            at += n;
        }
        Ok(out)
    }

    fn backward(&self, input: &[f32], output: &[f32], d_output: &[f32]) -> Result<Vec<f32>> {
        let (width, out_width) = (self.width(), self.n_heads * self.head_dim);
        let mut d_input = vec![0.0; input.len()];
        let mut at = 0;
        for &n in self.lengths.iter() {
            let part = |all: &[f32], width: usize| all[at * width..(at + n) * width].to_vec();
            let (rows, out, d_out) = (part(input, width), part(output, out_width), part(d_output, out_width));
            for kv in 0..self.n_kv_heads {
                let d_rows = &mut d_input[at * width..(at + n) * width];
                self.group_backward(&rows, &out, &d_out, kv, d_rows)?;
            }
            at += n;
        }
        Ok(d_input)
    }

    fn group_backward(&self, rows: &[f32], out: &[f32], d_out: &[f32], kv: usize, d_rows: &mut [f32]) -> Result<()> {
        let (d, size) = (self.head_dim, self.n_heads / self.n_kv_heads);
        let out_width = self.n_heads * d;
        let group = self.group(rows, kv)?;
        let n = group.n;
        let (mut d_q, mut d_k, mut d_v) = (vec![vec![0.0; n * d]; size], vec![0.0; n * d], vec![0.0; n * d]);
        for (first, end) in blocks(n) {
            let block = end - first;
            let q = group.queries(first, end)?;
            let p = group.probabilities(&q, first, end)?;
            let stacked = |all: &[f32]| {
                let mut stack = Vec::with_capacity(size * block * d);
                for head in kv * size..(kv + 1) * size {
                    self.gather(&all[first * out_width..end * out_width], out_width, head, false, &mut stack);
                }
                stack
            };
            let (o, d_o) = (stacked(out), stacked(d_out));
            let pulls = o.chunks_exact(d).zip(d_o.chunks_exact(d)).map(|(o, d_o)| dot(o, d_o)).collect();
            let d_o = Tensor::from_vec(d_o, (size * block, d), &Device::Cpu)?;
            let d_s = d_o.matmul(&group.v.narrow(0, 0, end)?.t()?)?;
            d_s.inplace_op2(&p, &SoftmaxGradient { pulls })?;
            read(&d_s.matmul(&group.k.narrow(0, 0, end)?)?, |d_block| {
                for (d_q, from) in d_q.iter_mut().zip(d_block.chunks_exact(block * d)) {
                    d_q[first * d..end * d].copy_from_slice(from);
                }
            })?;
            read(&d_s.t()?.matmul(&q)?, |d_block| add(&mut d_k, d_block))?;
            read(&p.t()?.matmul(&d_o)?, |d_block| add(&mut d_v, d_block))?;
        }
        for (i, d_q) in d_q.iter_mut().enumerate() {
            self.scatter(d_q, self.scale(), true, kv * size + i, d_rows);
        }
        self.scatter(&mut d_k, 1.0, true, self.n_heads + kv, d_rows);
        self.scatter(&mut d_v, 1.0, false, self.n_heads + self.n_kv_heads + kv, d_rows);
        Ok(())
    }
}

impl CustomOp1 for CausalAttention {
    fn name(&self) -> &'static str {
        "causal-attention"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let rows = layout.shape().dim(0)?;
        Ok((CpuStorage::F32(self.forward(slice(storage, layout)?)?), (rows, self.n_heads * self.head_dim).into()))
    }

    fn bwd(&self, arg: &Tensor, res: &Tensor, d_res: &Tensor) -> Result<Option<Tensor>> {
        let d_input = read(arg, |x| read(res, |y| read(d_res, |dy| self.backward(x, y, dy))))????;
        Ok(Some(Tensor::from_vec(d_input, arg.shape(), arg.device())?))
    }
}

/// Queries that share a KV head, in one sequence.
struct Group {
    /// Rotated and scaled, `[n, D]` for each head.
    q: Vec<Vec<f32>>,
    /// Rotated, `[n, D]`.
    k: Tensor,
    /// `[n, D]`.
    v: Tensor,
    n: usize,
    d: usize,
}

impl Group {
    /// `[heads * block, D]`, head after head.
    fn queries(&self, first: usize, end: usize) -> Result<Tensor> {
        let stack: Vec<f32> = self.q.iter().flat_map(|q| &q[first * self.d..end * self.d]).copied().collect();
        Tensor::from_vec(stack, (self.q.len() * (end - first), self.d), &Device::Cpu)
    }

    /// `[heads * block, end]`.
    fn probabilities(&self, queries: &Tensor, first: usize, end: usize) -> Result<Tensor> {
        let scores = queries.matmul(&self.k.narrow(0, 0, end)?.t()?)?;
        scores.inplace_op1(&CausalSoftmax { first })?;
        Ok(scores)
    }
}

/// First and end of each block of queries.
fn blocks(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).step_by(BLOCK).map(move |first| (first, (first + BLOCK).min(n)))
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f32], from: &[f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// Softmax over the keys that a query sees; zero beyond. Row `i` of each head is query `first + i`.
struct CausalSoftmax {
    first: usize,
}

impl InplaceOp1 for CausalSoftmax {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (_, end) = layout.shape().dims2()?;
        for (i, row) in elements(storage)?.chunks_exact_mut(end).enumerate() {
            let seen = self.first + i % (end - self.first) + 1;
            pointwise::softmax(&mut row[..seen]);
            row[seen..].fill(0.0);
        }
        Ok(())
    }
}

/// `dS = P (dP - pull)`, in place of `dP`.
struct SoftmaxGradient {
    /// `sum(dO O)` of each row.
    pulls: Vec<f32>,
}

impl InplaceOp2 for SoftmaxGradient {
    fn name(&self) -> &'static str {
        "softmax-gradient"
    }

    fn cpu_fwd(&self, d_p: &mut CpuStorage, l: &Layout, p: &CpuStorage, l_p: &Layout) -> Result<()> {
        let (_, end) = l.shape().dims2()?;
        let rows = elements(d_p)?.chunks_exact_mut(end).zip(slice(p, l_p)?.chunks_exact(end));
        for ((d_p, p), pull) in rows.zip(&self.pulls) {
            for (d_p, p) in d_p.iter_mut().zip(p) {
                *d_p = p * (*d_p - pull);
            }
        }
        Ok(())
    }
}

/// The elements of the fresh result of a product.
fn elements(storage: &mut CpuStorage) -> Result<&mut Vec<f32>> {
    match storage {
        CpuStorage::F32(all) => Ok(all),
        _ => bail!("training runs in f32"),
    }
}
