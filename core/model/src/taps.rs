//! What a forward pass is asked to record, and what it recorded. Data in, data out: no callbacks.

use std::collections::{BTreeMap, BTreeSet};

use candle_core::{D, Tensor};
use epikv_kernels::attention::Observe;
use epikv_kernels::lanes::dot;

pub use epikv_kernels::attention::HeadObservation;

use crate::cache::RowCache;
use crate::error::{Error, Result};
use crate::ops::{from_rows, kernels_apply, with_f32};

/// A named place in the forward pass. Layers are 0-based; shapes are for `T` packed tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TapPoint {
    /// Embedding output `[T, d]`.
    Embed,
    /// Residual stream after block `l`, `[T, d]`: `hidden_states[l + 1]` of Transformers, but **before** the final norm
    /// for the last block too.
    ResidPost(usize),
    /// After the final norm `[T, d]`.
    FinalNorm,
    /// Queries after rotation `[T, H, D]`.
    QueryPostRope(usize),
    /// Keys after rotation, as cached `[T, H_kv, D]`.
    KeyPostRope(usize),
    /// Keys before rotation (after the q/k norm where there is one) `[T, H_kv, D]`.
    KeyPreRope(usize),
    /// Values `[T, H_kv, D]`.
    Value(usize),
}

/// What leaves the device of a tapped tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reduce {
    /// All of it.
    Full,
    /// L2 norm over the last axis.
    Norm,
    /// Unbiased variance over the last axis.
    Variance,
    /// L2 norm of the difference to the previous token of the row, also across calls; only for `[T, d]` points.
    /// Undefined at the first token that a cache ever takes.
    StepNorm,
}

/// A reduction of attention weights, applied while they exist. The matrix is never kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttentionTap {
    /// Weight that each key receives, summed over the new tokens: `[H, keys]` a row.
    ColumnSum(usize),
    /// Entropy of each new token's row in nats: `[T, H]` a row.
    RowEntropy(usize),
    /// The rows of the last `w` new tokens: `[H, w, keys]` a row.
    Rows(usize, usize),
}

/// What to record. An empty plan costs nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbePlan {
    points: BTreeSet<(TapPoint, Reduce)>,
    attention: BTreeSet<AttentionTap>,
}

impl ProbePlan {
    /// Adds a tap point.
    #[must_use]
    pub fn tap(mut self, point: TapPoint, reduce: Reduce) -> Self {
        self.points.insert((point, reduce));
        self
    }

    /// Adds a reduction of attention weights.
    #[must_use]
    pub fn attention(mut self, tap: AttentionTap) -> Self {
        self.attention.insert(tap);
        self
    }

    /// Everything that either plan asks for.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            points: self.points.union(&other.points).copied().collect(),
            attention: self.attention.union(&other.attention).copied().collect(),
        }
    }

    /// Whether attention weights must exist. A plan without them is what the paper calls FA2-compatible.
    pub fn needs_attention(&self) -> bool {
        !self.attention.is_empty()
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.attention.is_empty()
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = (TapPoint, Reduce)> + '_ {
        self.points.iter().copied()
    }

    /// What the attention of a layer must observe.
    pub(crate) fn observe(&self, layer: usize) -> Observe {
        let mut observe = Observe::default();
        for tap in &self.attention {
            match *tap {
                AttentionTap::ColumnSum(l) if l == layer => observe.column_sum = true,
                AttentionTap::RowEntropy(l) if l == layer => observe.entropy = true,
                AttentionTap::Rows(l, w) if l == layer => observe.last_rows = observe.last_rows.max(w),
                _ => {}
            }
        }
        observe
    }
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Taps {
    tensors: BTreeMap<(TapPoint, Reduce), Tensor>,
    steps: BTreeMap<TapPoint, Vec<Option<f32>>>,
    attention: BTreeMap<usize, Vec<Vec<HeadObservation>>>,
}

impl Taps {
    /// A recorded tensor; `Full` has the shape of its point, `Norm` and `Variance` lack the last axis.
    pub fn get(&self, point: TapPoint, reduce: Reduce) -> Option<&Tensor> {
        self.tensors.get(&(point, reduce))
    }

    /// Lends the values of a recorded tensor, row-major; `None` where it was not recorded.
    ///
    /// # Errors
    /// If the tensor is not on the CPU.
    pub fn values<R>(&self, point: TapPoint, reduce: Reduce, f: impl FnOnce(&[f32]) -> R) -> Result<Option<R>> {
        self.get(point, reduce).map(|tensor| with_f32(tensor, f)).transpose()
    }

    /// Step norms `[T]`, null at the first token that a cache ever takes.
    pub fn step_norms(&self, point: TapPoint) -> Option<&[Option<f32>]> {
        self.steps.get(&point).map(Vec::as_slice)
    }

    /// What was observed of the attention of a layer: by row, then by KV head. Keys are in order of positions.
    pub fn attention(&self, layer: usize) -> Option<&[Vec<HeadObservation>]> {
        self.attention.get(&layer).map(Vec::as_slice)
    }

    pub(crate) fn observed(&mut self, layer: usize, rows: Vec<Vec<HeadObservation>>) {
        self.attention.insert(layer, rows);
    }

    /// Records a tensor at a point, in each form that the plan asks for.
    pub(crate) fn record(
        &mut self,
        plan: &ProbePlan,
        point: TapPoint,
        x: &Tensor,
        rows: &[usize],
        caches: &mut [&mut RowCache],
    ) -> Result<()> {
        for (_, reduce) in plan.points().filter(|(p, _)| *p == point) {
            let value = match reduce {
                Reduce::Full => x.clone(),
                Reduce::Norm => x.sqr()?.sum(D::Minus1)?.sqrt()?,
                Reduce::Variance if kernels_apply(x) => variances(x)?,
                Reduce::Variance => x.var(D::Minus1)?,
                Reduce::StepNorm => {
                    self.steps.insert(point, step_norms(point, x, rows, caches)?);
                    continue;
                }
            };
            self.tensors.insert((point, reduce), value);
        }
        Ok(())
    }
}

/// Unbiased variance over the last axis, in one pass over the values and without the tensor library's temporaries.
fn variances(x: &Tensor) -> Result<Tensor> {
    let (outer, d) = x.dims().split_at(x.dims().len() - 1);
    let d = d[0];
    let all = with_f32(x, |x| {
        let of = |v: &[f32]| {
            let mean = v.iter().map(|&x| f64::from(x)).sum::<f64>() / d as f64;
            let squares: f64 = v.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
            (squares / (d as f64 - 1.0)) as f32
        };
        x.chunks_exact(d).map(of).collect()
    })?;
    from_rows(all, outer)
}

/// `|a - b|` with the sum in lane order.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    let difference: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    dot(&difference, &difference).sqrt()
}

/// Differences to the previous token of each row; the last token of a row is kept for the next call.
fn step_norms(point: TapPoint, x: &Tensor, rows: &[usize], caches: &mut [&mut RowCache]) -> Result<Vec<Option<f32>>> {
    let key = match point {
        TapPoint::Embed => 0,
        TapPoint::ResidPost(layer) => layer + 1,
        TapPoint::FinalNorm => usize::MAX,
        _ => {
            return Err(Error::Request {
                what: "step norm",
                expected: "a point of shape [T, d]".to_owned(),
                got: format!("{point:?}"),
            });
        }
    };
    let (mut all, mut first) = (Vec::new(), 0);
    for (cache, &n) in caches.iter_mut().zip(rows) {
        if n == 0 {
            continue;
        }
        let own = x.narrow(0, first, n)?;
        let before = cache.previous.get(&key);
        if kernels_apply(&own) {
            let last = with_f32(&own, |own| -> Result<Vec<f32>> {
                let d = own.len() / n;
                all.push(before.map(|last| with_f32(last, |last| distance(&own[..d], last))).transpose()?);
                all.extend(own.chunks_exact(d).zip(own[d..].chunks_exact(d)).map(|(a, b)| Some(distance(b, a))));
                Ok(own[own.len() - d..].to_vec())
            })??;
            let d = last.len();
            cache.previous.insert(key, from_rows(last, &[1, d])?);
            first += n;
            continue;
        }
        let chain = match before {
            Some(last) => Tensor::cat(&[last, &own], 0)?,
            None => own.clone(),
        };
        let m = chain.dim(0)?;
        if before.is_none() {
            all.push(None);
        }
        if m > 1 {
            let norms = (chain.narrow(0, 1, m - 1)? - chain.narrow(0, 0, m - 1)?)?.sqr()?.sum(D::Minus1)?.sqrt()?;
            all.extend(norms.to_vec1::<f32>()?.into_iter().map(Some));
        }
        cache.previous.insert(key, own.narrow(0, n - 1, 1)?.contiguous()?);
        first += n;
    }
    Ok(all)
}
