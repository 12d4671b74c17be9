//! The keys and values held, head by head and in order of positions. Scores of held tokens are computed from them.

use epikv_model::cache::{HeadView, RowCache};

use crate::error::Result;

/// A KV head of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) layer: usize,
    /// Its number in the layer.
    pub(crate) index: usize,
    /// KV heads of a layer.
    pub(crate) n_heads: usize,
}

/// What one KV head holds.
pub(crate) type Held<'a> = HeadView<'a>;

/// Calls `f` for each KV head of a cache.
///
/// # Errors
/// If keys or values cannot be brought to the host.
pub(crate) fn each_head(cache: &RowCache, mut f: impl FnMut(Head, Held<'_>)) -> Result<()> {
    let (view, n_heads) = (cache.view()?, cache.n_kv_heads());
    for layer in 0..cache.n_layers() {
        for index in 0..n_heads {
            f(Head { layer, index, n_heads }, view.head(layer, index));
        }
    }
    Ok(())
}

/// One number a token of each kept set, in order of positions: `score` of each KV head, `[n]`, and the mean where a set is
/// shared by several.
///
/// # Errors
/// As [`each_head`].
pub(crate) fn by_set(cache: &RowCache, mut score: impl FnMut(Head, Held<'_>) -> Vec<f64>) -> Result<Vec<Vec<f32>>> {
    let mut sums: Vec<Vec<f64>> = cache.sets().iter().map(|set| vec![0.0; set.len()]).collect();
    let mut n = 0;
    each_head(cache, |head, held| {
        let set = cache.set_index(head.layer, head.index);
        for (sum, score) in sums[set].iter_mut().zip(score(head, held)) {
            *sum += score;
        }
        n += 1;
    })?;
    let sharing = (n / sums.len().max(1)).max(1) as f64;
    Ok(sums.into_iter().map(|set| set.into_iter().map(|sum| (sum / sharing) as f32).collect()).collect())
}
