//! Attention of packed rows over their caches: the row-invariant kernel on the CPU, tensor products elsewhere.

use candle_core::{D, DType, Tensor};
use epikv_kernels::attention::{AttentionRow, AttentionShape, HeadObservation, Observe, Segment, Slots, attend};

use crate::cache::{RowCache, not_on_the_host};
use crate::error::{Error, Result};
use crate::ops::{from_rows, kernels_apply, with_f32};

/// Attends for the new tokens of all rows; their keys and values are already in the caches.
///
/// # Shapes
/// `q`: `[sum T, H, D]`, `rows`: new tokens a row; returns `[sum T, H D]` and what was observed, by row and KV head.
pub(crate) fn attention(
    q: &Tensor,
    rows: &[usize],
    caches: &[&mut RowCache],
    layer: usize,
    shape: AttentionShape,
    observe: &Observe,
) -> Result<(Tensor, Vec<Vec<HeadObservation>>)> {
    if kernels_apply(q) {
        on_cpu(q, rows, caches, layer, shape, observe)
    } else {
        by_tensors(q, rows, caches, layer, shape, observe)
    }
}

fn on_cpu(
    q: &Tensor,
    rows: &[usize],
    caches: &[&mut RowCache],
    layer: usize,
    shape: AttentionShape,
    observe: &Observe,
) -> Result<(Tensor, Vec<Vec<HeadObservation>>)> {
    let width = shape.n_heads * shape.head_dim;
    let mut out = vec![0.0; q.elem_count()];
    let observed = with_f32(q, |q| -> Result<_> {
        let (mut batch, mut first) = (Vec::with_capacity(rows.len()), 0);
        for (cache, &n) in caches.iter().zip(rows) {
            let heads = (0..shape.n_kv_heads).map(|head| segments(cache, layer, head)).collect::<Result<_>>()?;
            batch.push(AttentionRow { q: &q[first * width..(first + n) * width], heads });
            first += n;
        }
        Ok(attend(&batch, shape, observe, &mut out))
    })??;
    Ok((from_rows(out, &[q.dim(0)?, width])?, observed))
}

/// What a KV head of a row sees: a shared prefix and the row's own slots in order of positions.
fn segments(cache: &RowCache, layer: usize, head: usize) -> Result<[Segment<'_>; 2]> {
    let missing = || not_on_the_host("a device");
    let prefix = match cache.prefix() {
        Some((prefix, n)) => {
            let (k, v) = prefix.host(layer, head).ok_or_else(missing)?;
            Segment { k, v, slots: Slots::First(n) }
        }
        None => Segment { k: &[], v: &[], slots: Slots::First(0) },
    };
    let (k, v) = cache.host(layer, head).ok_or_else(missing)?;
    Ok([prefix, Segment { k, v, slots: Slots::List(cache.set_of(layer, head).order()) }])
}

/// The same by the tensor library: scores, mask, softmax and values of one row after another, all heads at once. Heads
/// that hold less than the longest are filled up in front, where nothing is seen.
fn by_tensors(
    q: &Tensor,
    rows: &[usize],
    caches: &[&mut RowCache],
    layer: usize,
    shape: AttentionShape,
    observe: &Observe,
) -> Result<(Tensor, Vec<Vec<HeadObservation>>)> {
    if observe.any() {
        return Err(Error::Request {
            what: "attention taps",
            expected: "a CPU device".to_owned(),
            got: format!("{:?}", q.device().location()),
        });
    }
    let (mut outs, mut first) = (Vec::with_capacity(rows.len()), 0);
    let group = shape.n_heads / shape.n_kv_heads;
    for (cache, &n) in caches.iter().zip(rows) {
        let (k, v, n_filled) = visible(cache, layer, shape)?; // [H_kv, keys, D]
        let keys = k.dim(1)?;
        // [T, H, D] -> [H_kv, G T, D]
        let rows_q = q.narrow(0, first, n)?.reshape((n, shape.n_kv_heads, group, shape.head_dim))?;
        let rows_q = rows_q.permute((1, 2, 0, 3))?.reshape((shape.n_kv_heads, group * n, shape.head_dim))?;
        let scores = (rows_q.matmul(&k.t()?)? * f64::from(shape.scale))?;
        // One mask for all heads where none is filled up.
        let masks = if n_filled.iter().all(|n| *n == 0) { &n_filled[..1] } else { &n_filled };
        let is_hidden = |filled: usize, i: usize, j: usize| j < filled || j + n > keys + i % n;
        let hidden: Vec<f32> = masks
            .iter()
            .flat_map(|&filled| (0..group * n).flat_map(move |i| (0..keys).map(move |j| (filled, i, j))))
            .map(|(filled, i, j)| if is_hidden(filled, i, j) { f32::NEG_INFINITY } else { 0.0 })
            .collect();
        let hidden = Tensor::from_vec(hidden, (masks.len(), group * n, keys), q.device())?.to_dtype(scores.dtype())?;
        let weights = candle_nn::ops::softmax(&scores.broadcast_add(&hidden)?.to_dtype(DType::F32)?, D::Minus1)?;
        let out = weights.to_dtype(v.dtype())?.matmul(&v)?; // [H_kv, G T, D]
        let out = out.reshape((shape.n_kv_heads, group, n, shape.head_dim))?.permute((2, 0, 1, 3))?;
        outs.push(out.reshape((n, shape.n_heads * shape.head_dim))?);
        first += n;
    }
    Ok((Tensor::cat(&outs, 0)?, Vec::new()))
}

/// All visible keys and values of a row in order of positions, `[H_kv, keys, D]`, and by head how many vectors in front
/// stand for none.
fn visible(cache: &RowCache, layer: usize, shape: AttentionShape) -> Result<(Tensor, Tensor, Vec<usize>)> {
    let mut heads = Vec::with_capacity(shape.n_kv_heads);
    for head in 0..shape.n_kv_heads {
        let (k, v) = cache.tensors(layer, head, cache.set_of(layer, head).order())?;
        heads.push(match cache.prefix() {
            Some((prefix, n)) => {
                let places: Vec<u32> = (0..n as u32).collect();
                let (shared_k, shared_v) = prefix.tensors(layer, head, &places)?;
                (Tensor::cat(&[&shared_k, &k], 0)?, Tensor::cat(&[&shared_v, &v], 0)?)
            }
            None => (k, v),
        });
    }
    let keys = heads.iter().map(|(k, _)| k.dim(0)).collect::<candle_core::Result<Vec<_>>>()?;
    let most = keys.iter().copied().max().unwrap_or(0);
    let n_filled: Vec<usize> = keys.iter().map(|n| most - n).collect();
    let padded = |(vectors, n): (&Tensor, usize)| vectors.pad_with_zeros(0, n, 0);
    let stacked = |vectors: Vec<&Tensor>| -> Result<Tensor> {
        let same = vectors.into_iter().zip(n_filled.iter().copied()).map(padded);
        Ok(Tensor::stack(&same.collect::<candle_core::Result<Vec<_>>>()?, 0)?)
    };
    let (k, v) = heads.iter().map(|(k, v)| (k, v)).unzip();
    let (k, v) = (stacked(k)?, stacked(v)?);
    Ok((k, v, n_filled))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::cache::{Capacity, Place, Pos, Scope};
    use crate::load::RandomSpec;

    fn random(shape: &[usize], seed: u32) -> Tensor {
        let n: usize = shape.iter().product();
        let v = (0..n as u32).map(|i| ((i.wrapping_mul(2_654_435_761) ^ seed) % 2003) as f32 / 700.0 - 1.4).collect();
        from_rows(v, shape).unwrap()
    }

    /// The path of other devices is the plain reference of the kernel: evicted, unsorted slots and sets of different sizes
    /// included.
    #[test]
    fn the_kernel_agrees_with_tensor_products() {
        let config = "random:1,heads=6,kv_heads=2,layers=1,hidden=96".parse::<RandomSpec>().unwrap().config();
        let (h, h_kv, d) = (config.n_heads, config.n_kv_heads, config.head_dim);
        let shape = AttentionShape { n_heads: h, n_kv_heads: h_kv, head_dim: d, scale: 0.25 };
        let on_device = || Place::Tensors { device: Device::Cpu, dtype: DType::F32 };
        for (scope, capacity) in [
            (Scope::Global, Capacity::Fixed(30)),
            (Scope::PerHead, Capacity::Fixed(30)),
            (Scope::PerHead, Capacity::Sets(vec![25, 40])),
        ] {
            let q = random(&[7, h, d], 5);
            let attended = |place: Place| {
                let mut cache = RowCache::at(place, &config, scope, capacity.clone()).unwrap();
                let append = |cache: &mut RowCache, positions: std::ops::Range<u32>| {
                    let positions: Vec<Pos> = positions.map(Pos).collect();
                    let slots = cache.reserve(&positions).unwrap();
                    let new = |seed| random(&[positions.len(), h_kv, d], seed);
                    cache.write(0, &new(positions[0].0), &new(positions[0].0 + 99), &slots).unwrap();
                };
                append(&mut cache, 0..24);
                for set in 0..cache.sets().len() {
                    cache.evict(set, |p| p.0 % 4 != set as u32 && p.0 < 24 - 5 * set as u32);
                }
                append(&mut cache, 24..31);
                let (is_on_host, caches) = (cache.host(0, 0).is_some(), [&mut cache]);
                let by = if is_on_host { on_cpu } else { by_tensors };
                by(&q, &[7], &caches, 0, shape, &Observe::default()).unwrap().0
            };
            let worst = (attended(Place::Host) - attended(on_device())).unwrap().abs().unwrap();
            let worst = worst.flatten_all().unwrap().max(0).unwrap();
            assert!(worst.to_scalar::<f32>().unwrap() < 1e-5, "{scope:?}");
        }
    }
}
