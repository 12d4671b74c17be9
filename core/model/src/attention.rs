//! Attention of packed rows over their caches: the row-invariant kernel on the CPU, tensor products elsewhere.

use candle_core::{D, DType, Storage, Tensor};
use epikv_kernels::attention::{AttentionRow, AttentionShape, HeadObservation, Observe, Segment, Slots, attend};

use crate::cache::RowCache;
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
    // Read locks on the storage of every row, held while the kernel runs.
    let stored: Vec<_> =
        caches.iter().map(|c| (c.layer(layer), c.prefix().map(|(p, n)| (p.layer(layer), n)))).collect();
    let guards: Vec<_> = stored
        .iter()
        .map(|((k, v), prefix)| {
            let shared = prefix.map(|((k, v), n)| (k.storage_and_layout().0, v.storage_and_layout().0, n));
            (k.storage_and_layout().0, v.storage_and_layout().0, shared)
        })
        .collect();
    let width = shape.n_heads * shape.head_dim;
    let mut out = vec![0.0; q.elem_count()];
    let observed = with_f32(q, |q| -> Result<_> {
        let (mut batch, mut first) = (Vec::with_capacity(rows.len()), 0);
        for ((cache, (k, v, shared)), &n) in caches.iter().zip(&guards).zip(rows) {
            let (k, v) = (slice(k)?, slice(v)?);
            let shared = match shared {
                Some((k, v, n)) => Some((slice(k)?, slice(v)?, *n)),
                None => None,
            };
            let heads = (0..shape.n_kv_heads)
                .map(|head| {
                    let part = |all: &'_ [f32]| -> std::ops::Range<usize> {
                        let size = all.len() / shape.n_kv_heads;
                        head * size..(head + 1) * size
                    };
                    let prefix = match shared {
                        Some((k, v, n)) => Segment { k: &k[part(k)], v: &v[part(v)], slots: Slots::First(n) },
                        None => Segment { k: &[], v: &[], slots: Slots::First(0) },
                    };
                    let slots = Slots::List(cache.set_of(layer, head).order());
                    [prefix, Segment { k: &k[part(k)], v: &v[part(v)], slots }]
                })
                .collect();
            batch.push(AttentionRow { q: &q[first * width..(first + n) * width], heads });
            first += n;
        }
        Ok(attend(&batch, shape, observe, &mut out))
    })??;
    Ok((from_rows(out, &[q.dim(0)?, width])?, observed))
}

fn slice(storage: &Storage) -> Result<&[f32]> {
    match storage {
        Storage::Cpu(candle_core::CpuStorage::F32(all)) => Ok(all),
        _ => Err(Error::Request {
            what: "cache for the CPU kernel",
            expected: "f32 on the CPU".to_owned(),
            got: "another storage".to_owned(),
        }),
    }
}

/// The same by the tensor library: scores, mask, softmax and values of one row after another, all heads at once.
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
        let (k, v) = visible(cache, layer, shape)?; // [H_kv, keys, D]
        let keys = k.dim(1)?;
        // [T, H, D] -> [H_kv, G T, D]
        let rows_q = q.narrow(0, first, n)?.reshape((n, shape.n_kv_heads, group, shape.head_dim))?;
        let rows_q = rows_q.permute((1, 2, 0, 3))?.reshape((shape.n_kv_heads, group * n, shape.head_dim))?;
        let scores = (rows_q.matmul(&k.t()?)? * f64::from(shape.scale))?;
        let hidden: Vec<f32> = (0..group * n)
            .flat_map(|i| (0..keys).map(move |j| if j + n > keys + i % n { f32::NEG_INFINITY } else { 0.0 }))
            .collect();
        let hidden = Tensor::from_vec(hidden, (1, group * n, keys), q.device())?.to_dtype(scores.dtype())?;
        let weights = candle_nn::ops::softmax(&scores.broadcast_add(&hidden)?.to_dtype(DType::F32)?, D::Minus1)?;
        let out = weights.to_dtype(v.dtype())?.matmul(&v)?; // [H_kv, G T, D]
        let out = out.reshape((shape.n_kv_heads, group, n, shape.head_dim))?.permute((2, 0, 1, 3))?;
        outs.push(out.reshape((n, shape.n_heads * shape.head_dim))?);
        first += n;
    }
    Ok((Tensor::cat(&outs, 0)?, Vec::new()))
}

/// All visible keys and values of a row in order of positions, `[H_kv, keys, D]`.
fn visible(cache: &RowCache, layer: usize, shape: AttentionShape) -> Result<(Tensor, Tensor)> {
    let (k, v) = cache.layer(layer);
    let own = |stored: &Tensor| -> Result<Tensor> {
        let heads = (0..shape.n_kv_heads)
            .map(|head| {
                let index = Tensor::new(cache.set_of(layer, head).order(), stored.device())?;
                Ok(stored.narrow(0, head, 1)?.index_select(&index, 1)?)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Tensor::cat(&heads, 0)?)
    };
    let (k, v) = (own(k)?, own(v)?);
    match cache.prefix() {
        Some((prefix, n)) => {
            let (pk, pv) = prefix.layer(layer);
            Ok((Tensor::cat(&[&pk.narrow(1, 0, n)?, &k], 1)?, Tensor::cat(&[&pv.narrow(1, 0, n)?, &v], 1)?))
        }
        None => Ok((k, v)),
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::cache::{Capacity, Pos, Scope};
    use crate::load::RandomSpec;

    fn random(shape: &[usize], seed: u32) -> Tensor {
        let n: usize = shape.iter().product();
        let v = (0..n as u32).map(|i| ((i.wrapping_mul(2_654_435_761) ^ seed) % 2003) as f32 / 700.0 - 1.4).collect();
        from_rows(v, shape).unwrap()
    }

    /// The path of other devices is the plain reference of the kernel: evicted, unsorted slots included.
    #[test]
    fn the_kernel_agrees_with_tensor_products() {
        let config = "random:1,heads=6,kv_heads=2,layers=1,hidden=96".parse::<RandomSpec>().unwrap().config();
        let (h, h_kv, d) = (config.n_heads, config.n_kv_heads, config.head_dim);
        let shape = AttentionShape { n_heads: h, n_kv_heads: h_kv, head_dim: d, scale: 0.25 };
        for scope in [Scope::Global, Scope::PerHead] {
            let mut cache = RowCache::new(&config, &Device::Cpu, scope, Capacity::Fixed(30)).unwrap();
            let append = |cache: &mut RowCache, positions: std::ops::Range<u32>| {
                let positions: Vec<Pos> = positions.map(Pos).collect();
                let slots = cache.reserve(&positions).unwrap();
                let new = |seed| random(&[positions.len(), h_kv, d], seed);
                cache.write(0, &new(positions[0].0), &new(positions[0].0 + 99), &slots).unwrap();
            };
            append(&mut cache, 0..24);
            for set in 0..cache.sets().len() {
                cache.evict(set, |p| p.0 % 4 != set as u32);
            }
            append(&mut cache, 24..31);
            let q = random(&[7, h, d], 5);
            let caches = [&mut cache];
            let (fast, _) = on_cpu(&q, &[7], &caches, 0, shape, &Observe::default()).unwrap();
            let (plain, _) = by_tensors(&q, &[7], &caches, 0, shape, &Observe::default()).unwrap();
            let worst = (fast - plain).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
            assert!(worst.to_scalar::<f32>().unwrap() < 1e-5, "{scope:?}");
        }
    }
}
