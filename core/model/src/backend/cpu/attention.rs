//! Attention of packed rows over their caches by the row-invariant kernel.

use candle_core::Tensor;
use epikv_kernels::attention::{AttentionRow, Observe, Segment, Slots};

use super::elements::{from_rows, with_f32};
use crate::backend::operations::{Attention, Observations};
use crate::cache::{RowCache, not_on_the_host};
use crate::error::Result;
use crate::reads::ReadList;

/// As [`Backend::attend`](crate::backend::operations::Backend::attend).
pub(super) fn attend(q: &Tensor, caches: &[&mut RowCache], asked: &Attention<'_>) -> Result<(Tensor, Observations)> {
    let Attention { layer, shape, .. } = *asked;
    let mut observe: Observe = asked.observe.clone();
    observe.column_sum |= asked.is_explicit;
    let width = shape.n_heads * shape.head_dim;
    let mut out = vec![0.0; q.elem_count()];
    let observed = with_f32(q, |q| -> Result<_> {
        let (mut batch, mut first) = (Vec::with_capacity(caches.len()), 0);
        for (row, (cache, &n)) in caches.iter().zip(asked.rows).enumerate() {
            let of_head = |head| segments(cache, asked.reads.list(row, cache, layer, head), layer, head);
            let heads = (0..shape.n_kv_heads).map(of_head).collect::<Result<_>>()?;
            batch.push(AttentionRow { q: &q[first * width..(first + n) * width], heads });
            first += n;
        }
        Ok(epikv_kernels::attention::attend(&batch, shape, &observe, &mut out))
    })??;
    Ok((from_rows(out, &[q.dim(0)?, width])?, observed))
}

/// What a KV head of a row sees, all or what it reads of it: a shared prefix and the row's own slots in order of positions.
fn segments<'a>(
    cache: &'a RowCache,
    read: Option<&'a ReadList>,
    layer: usize,
    head: usize,
) -> Result<[Segment<'a>; 2]> {
    let missing = || not_on_the_host("a device");
    let prefix = match cache.prefix() {
        Some((prefix, n)) => {
            let (k, v) = prefix.host(layer, head).ok_or_else(missing)?;
            Segment { k, v, slots: read.map_or(Slots::First(n), |read| Slots::List(&read.prefix)) }
        }
        None => Segment { k: &[], v: &[], slots: Slots::First(0) },
    };
    let (k, v) = cache.host(layer, head).ok_or_else(missing)?;
    let slots = read.map_or(cache.set_of(layer, head).order(), |read| &read.own);
    Ok([prefix, Segment { k, v, slots: Slots::List(slots) }])
}
