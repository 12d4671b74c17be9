//! Attention of packed rows over their caches by tensor products: one row after another, all its heads at once.
//!
//! Heads that hold fewer tokens than the longest are padded in front, and the padding is masked. Weights are computed
//! for a tile of queries at a time, and reduced before they are copied to the host.

use candle_core::{D, DType, Tensor};
use candle_nn::ops::softmax;
use epikv_kernels::attention::{AttentionShape, HeadObservation, Observe};

use super::Tensors;
use super::ops::product;
use crate::backend::operations::{Attention, Backend, Observations};
use crate::cache::RowCache;
use crate::error::Result;

/// Queries whose weights exist together.
const QUERY_TILE: usize = 64;

/// As [`Backend::attend`].
pub(super) fn attend(
    backend: &Tensors,
    q: &Tensor,
    caches: &[&mut RowCache],
    asked: &Attention<'_>,
) -> Result<(Tensor, Observations)> {
    let (mut outs, mut observed, mut first) = (Vec::with_capacity(caches.len()), Vec::new(), 0);
    // The last layer goes on with wanted tokens only, and a row may want none.
    for (at, (cache, &n)) in caches.iter().zip(asked.rows).enumerate().filter(|(_, (_, n))| **n > 0) {
        let row = Row::new(cache, at, asked, n)?;
        let (out, seen) = row.attend(&q.narrow(0, first, n)?, asked.observe)?;
        outs.push(out);
        if asked.observe.any() {
            observed.push(row.observations(backend, asked.observe, &seen)?);
        }
        first += n;
    }
    Ok((Tensor::cat(&outs, 0)?, observed))
}

/// What a row of the batch sees at a layer.
struct Row {
    shape: AttentionShape,
    /// New tokens.
    n_tokens: usize,
    /// Keys and values in order of positions, `[H_kv, keys, D]`.
    k: Tensor,
    v: Tensor,
    /// By KV head, how many vectors in front stand for none.
    n_filled: Vec<usize>,
}

/// What was observed of the weights of a row, on the device.
#[derive(Default)]
struct Seen {
    /// `[H_kv, G, keys]`.
    column_sum: Option<Tensor>,
    /// The same by age, in the order of the request.
    young_sums: Vec<Tensor>,
    /// `[H_kv, tokens, G]` of each tile.
    entropy: Vec<Tensor>,
    distance: Vec<Tensor>,
    /// `[H_kv, G, tokens, keys]` of the tiles at the end.
    last_rows: Vec<Tensor>,
}

impl Row {
    /// Row `at` of the batch.
    fn new(cache: &RowCache, at: usize, asked: &Attention<'_>, n_tokens: usize) -> Result<Self> {
        let (layer, shape) = (asked.layer, asked.shape);
        let mut heads = Vec::with_capacity(shape.n_kv_heads);
        for head in 0..shape.n_kv_heads {
            let read = asked.reads.list(at, cache, layer, head);
            let (k, v) =
                cache.tensors(layer, head, read.map_or(cache.set_of(layer, head).order(), |read| &read.own))?;
            heads.push(match cache.prefix() {
                Some((prefix, n)) => {
                    let places = read.map_or_else(|| (0..n as u32).collect(), |read| read.prefix.clone());
                    let (shared_k, shared_v) = prefix.tensors(layer, head, &places)?;
                    (Tensor::cat(&[&shared_k, &k], 0)?, Tensor::cat(&[&shared_v, &v], 0)?)
                }
                None => (k, v),
            });
        }
        let keys = heads.iter().map(|(k, _)| k.dim(0)).collect::<candle_core::Result<Vec<_>>>()?;
        let most = keys.iter().copied().max().unwrap_or(0);
        let n_filled: Vec<usize> = keys.iter().map(|n| most - n).collect();
        let stacked = |vectors: Vec<Tensor>| -> Result<Tensor> {
            let same = vectors.iter().zip(&n_filled).map(|(vectors, &n)| vectors.pad_with_zeros(0, n, 0));
            Ok(Tensor::stack(&same.collect::<candle_core::Result<Vec<_>>>()?, 0)?)
        };
        let (k, v) = heads.into_iter().unzip();
        Ok(Self { shape, n_tokens, k: stacked(k)?, v: stacked(v)?, n_filled })
    }

    fn group(&self) -> usize {
        self.shape.n_heads / self.shape.n_kv_heads
    }

    fn n_keys(&self) -> usize {
        self.k.dims()[1]
    }

    /// Attends for the queries `[T, H, D]`: `[T, H D]`, and what was to be observed.
    fn attend(&self, q: &Tensor, observe: &Observe) -> Result<(Tensor, Seen)> {
        let (kv, group, d) = (self.shape.n_kv_heads, self.group(), self.shape.head_dim);
        let (mut outs, mut seen) = (Vec::new(), Seen::default());
        for from in (0..self.n_tokens).step_by(QUERY_TILE) {
            let n = QUERY_TILE.min(self.n_tokens - from);
            // [n, H, D] -> [H_kv, G n, D]
            let tile = q.narrow(0, from, n)?.reshape((n, kv, group, d))?.permute((1, 2, 0, 3))?;
            let tile = tile.reshape((kv, group * n, d))?;
            let scores = (product(&tile, &self.k.t()?)? * f64::from(self.shape.scale))?;
            let back = self.keys_back(from, n)?; // [n, keys]
            let scores = scores.reshape((kv, group, n, self.n_keys()))?.broadcast_add(&self.hidden(&back)?)?;
            let weights = softmax(&scores, D::Minus1)?; // [H_kv, G, n, keys]
            if observe.any() {
                seen.take(&weights, &back, observe, self.n_tokens - from - n)?;
            }
            let weights = weights.reshape((kv, group * n, self.n_keys()))?.to_dtype(self.v.dtype())?;
            let out = product(&weights, &self.v)?.reshape((kv, group, n, d))?.permute((2, 0, 1, 3))?;
            outs.push(out.reshape((n, self.shape.n_heads * d))?.to_dtype(q.dtype())?);
        }
        Ok((Tensor::cat(&outs, 0)?, seen))
    }

    /// How many keys back each key is from each of `n` new tokens, `[n, keys]`; below zero for those after it.
    fn keys_back(&self, from: usize, n: usize) -> Result<Tensor> {
        let (device, keys) = (self.k.device(), self.n_keys());
        let own = (keys - self.n_tokens + from) as f32;
        let own = Tensor::arange(own, own + n as f32, device)?.unsqueeze(1)?;
        let places = Tensor::arange(0.0_f32, keys as f32, device)?.unsqueeze(0)?;
        Ok(own.broadcast_sub(&places)?)
    }

    /// What is added to scores: minus infinity where a key is not seen, `[1 or H_kv, 1, n, keys]`.
    fn hidden(&self, back: &Tensor) -> Result<Tensor> {
        let (n, keys) = back.dims2()?;
        let device = back.device();
        let later = back.lt(0.0)?.reshape((1, 1, n, keys))?;
        let zeros = |heads: usize| Tensor::zeros((heads, 1, n, keys), DType::F32, device);
        let lowest = |heads: usize| Tensor::full(f32::NEG_INFINITY, (heads, 1, n, keys), device);
        let hidden = later.where_cond(&lowest(1)?, &zeros(1)?)?;
        if self.n_filled.iter().all(|n| *n == 0) {
            return Ok(hidden);
        }
        let heads = self.n_filled.len();
        let filled: Vec<f32> = self.n_filled.iter().map(|&n| n as f32).collect();
        let filled = Tensor::from_vec(filled, (heads, 1, 1, 1), device)?;
        let places = Tensor::arange(0.0_f32, keys as f32, device)?.reshape((1, 1, 1, keys))?;
        let filled = places.broadcast_lt(&filled)?.broadcast_as((heads, 1, n, keys))?.contiguous()?;
        Ok(filled.where_cond(&lowest(heads)?, &zeros(heads)?)?.broadcast_add(&hidden)?)
    }

    /// What was observed, on the host, by KV head and without what stands for no key.
    fn observations(&self, backend: &Tensors, observe: &Observe, seen: &Seen) -> Result<Vec<HeadObservation>> {
        let keys = self.n_keys();
        let heads = self
            .n_filled
            .iter()
            .map(|filled| HeadObservation::new(observe, self.group(), self.n_tokens, keys - filled));
        let mut heads: Vec<HeadObservation> = heads.collect();
        // Gives each head its part of `[H_kv, rows, keys]`.
        let mut by_key = |sums: &Tensor, of: &dyn Fn(&mut HeadObservation) -> Option<&mut Vec<f32>>| -> Result<()> {
            let all = backend.host(sums)?;
            let size = all.len() / heads.len();
            for ((head, all), &filled) in heads.iter_mut().zip(all.chunks_exact(size)).zip(&self.n_filled) {
                if let Some(own) = of(head) {
                    *own = all.chunks_exact(keys).flat_map(|row| &row[filled..]).copied().collect();
                }
            }
            Ok(())
        };
        if let Some(sums) = &seen.column_sum {
            by_key(sums, &|head| Some(&mut head.column_sum))?;
        }
        for (age, sums) in observe.ages.iter().zip(&seen.young_sums) {
            by_key(sums, &|head| head.young_sums.get_mut(age))?;
        }
        if !seen.last_rows.is_empty() {
            by_key(&Tensor::cat(&seen.last_rows, 2)?, &|head| Some(&mut head.last_rows))?;
        }
        let mut by_token = |tiles: &[Tensor], of: fn(&mut HeadObservation) -> &mut Vec<f32>| -> Result<()> {
            if tiles.is_empty() {
                return Ok(());
            }
            let all = Tensor::cat(tiles, 1)?;
            let all = backend.host(&all)?;
            let size = all.len() / heads.len();
            heads.iter_mut().zip(all.chunks_exact(size)).for_each(|(head, all)| *of(head) = all.to_vec());
            Ok(())
        };
        by_token(&seen.entropy, |head| &mut head.entropy)?;
        by_token(&seen.distance, |head| &mut head.distance)?;
        Ok(heads)
    }
}

impl Seen {
    /// Takes the weights of a tile of queries, `[H_kv, G, n, keys]`, after which `n_after` more new tokens come.
    fn take(&mut self, weights: &Tensor, back: &Tensor, observe: &Observe, n_after: usize) -> Result<()> {
        if observe.column_sum {
            let tile = weights.sum(2)?;
            self.column_sum = Some(match self.column_sum.take() {
                Some(sum) => (sum + tile)?,
                None => tile,
            });
        }
        for (i, &age) in observe.ages.iter().enumerate() {
            let young = back.le(age as f64)?.to_dtype(DType::F32)?;
            let tile = weights.broadcast_mul(&young)?.sum(2)?;
            match self.young_sums.get_mut(i) {
                Some(sum) => *sum = (&*sum + tile)?,
                None => self.young_sums.push(tile),
            }
        }
        if observe.entropy {
            // A weight of zero adds nothing, whatever the logarithm.
            let logs = (weights + f64::from(f32::MIN_POSITIVE))?.log()?;
            self.entropy.push((weights * logs)?.sum(D::Minus1)?.neg()?.transpose(1, 2)?.contiguous()?);
        }
        if observe.distance {
            let back = weights.broadcast_mul(back)?.sum(D::Minus1)?;
            self.distance.push(back.transpose(1, 2)?.contiguous()?);
        }
        let n = weights.dim(2)?;
        let kept = observe.last_rows.saturating_sub(n_after).min(n);
        if kept > 0 {
            self.last_rows.push(weights.narrow(2, n - kept, kept)?.contiguous()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use candle_core::Device;

    use super::*;
    use crate::backend::operations::Appended;
    use crate::backend::{DeviceName, Dtype, cpu::Kernels};
    use crate::cache::{Capacity, Part, Pos, Scope};
    use crate::load::RandomSpec;
    use crate::plan::StepPlan;
    use crate::taps::ProbePlan;

    fn random(shape: &[usize], seed: u32) -> Tensor {
        let n: usize = shape.iter().product();
        let v = (0..n as u32).map(|i| ((i.wrapping_mul(2_654_435_761) ^ seed) % 2003) as f32 / 700.0 - 1.4).collect();
        Tensor::from_vec::<_, f32>(v, shape, &Device::Cpu).unwrap()
    }

    /// Tensor products are the plain reference of the kernel: evicted, unsorted slots and sets of different sizes included.
    #[test]
    fn the_kernel_agrees_with_tensor_products() {
        let config = "random:1,heads=6,kv_heads=2,layers=1,hidden=96".parse::<RandomSpec>().unwrap().config();
        let (h, h_kv, d) = (config.n_heads, config.n_kv_heads, config.head_dim);
        let shape = AttentionShape { n_heads: h, n_kv_heads: h_kv, head_dim: d, scale: 0.25 };
        let kernels: Arc<dyn Backend> = Arc::new(Kernels::new());
        let tensors: Arc<dyn Backend> = Arc::new(Tensors::new(DeviceName::Tensor, Device::Cpu, Dtype::F32));
        for (scope, capacity) in [
            (Scope::Global, Capacity::Fixed(30)),
            (Scope::PerHead, Capacity::Fixed(30)),
            (Scope::PerHead, Capacity::Sets(vec![25, 40])),
        ] {
            let q = random(&[7, h, d], 5);
            let attended = |backend: &Arc<dyn Backend>| {
                let mut cache = RowCache::at(backend.place_of_caches(), &config, scope, capacity.clone()).unwrap();
                let append = |cache: &mut RowCache, positions: std::ops::Range<u32>| {
                    let positions: Vec<Pos> = positions.map(Pos).collect();
                    let slots = [cache.reserve(&positions).unwrap()];
                    let appended = Appended { lengths: &[positions.len()], slots: &slots };
                    for (part, seed) in [(Part::Keys, positions[0].0), (Part::Values, positions[0].0 + 99)] {
                        let new = random(&[positions.len(), h_kv, d], seed);
                        backend.write(part, 0, &new, &mut [&mut *cache], appended).unwrap();
                    }
                };
                append(&mut cache, 0..24);
                for set in 0..cache.sets().len() {
                    cache.evict(set, |p| p.0 % 4 != set as u32 && p.0 < 24 - 5 * set as u32);
                }
                append(&mut cache, 24..31);
                let observe = Observe::default();
                let caches = [&mut cache];
                let reads = StepPlan::from(&ProbePlan::default()).reads(&caches).unwrap();
                let asked =
                    Attention { layer: 0, rows: &[7], reads: &reads, shape, observe: &observe, is_explicit: false };
                backend.attend(&q, &caches, &asked).unwrap().0
            };
            let worst = (attended(&kernels) - attended(&tensors)).unwrap().abs().unwrap();
            let worst = worst.flatten_all().unwrap().max(0).unwrap();
            assert!(worst.to_scalar::<f32>().unwrap() < 1e-5, "{scope:?}");
        }
    }
}
