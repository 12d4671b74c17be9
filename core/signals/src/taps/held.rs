//! The keys and values that are held, head by head and in order of positions: what scores of the live cache are made of.

use epikv_model::cache::{RowCache, Scope};

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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held<'a> {
    /// Keys after rotation, `[capacity, D]` by slot.
    pub(crate) keys: &'a [f32],
    /// Values, likewise.
    pub(crate) values: &'a [f32],
    /// The occupied slots in order of their positions, `[n]`.
    pub(crate) slots: &'a [u32],
    /// `D`.
    pub(crate) head_dim: usize,
}

impl<'a> Held<'a> {
    /// Tokens held.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The key of the token at a place in the order of positions, `[D]`.
    pub(crate) fn key(&self, place: usize) -> &'a [f32] {
        self.of(self.keys, place)
    }

    /// The value of the token at a place in the order of positions, `[D]`.
    pub(crate) fn value(&self, place: usize) -> &'a [f32] {
        self.of(self.values, place)
    }

    fn of(&self, vectors: &'a [f32], place: usize) -> &'a [f32] {
        let from = self.slots[place] as usize * self.head_dim;
        &vectors[from..from + self.head_dim]
    }
}

/// Calls `f` for each KV head of a cache.
///
/// # Errors
/// If keys or values are not on the CPU.
pub(crate) fn each_head(cache: &RowCache, mut f: impl FnMut(Head, Held<'_>)) -> Result<()> {
    for layer in 0..cache.n_layers() {
        let n_heads = cache.layer(layer).0.dims()[0];
        cache.keys(layer, |keys| {
            cache.values(layer, |values| {
                let size = keys.len() / n_heads.max(1);
                for head in 0..n_heads {
                    let set = cache.set_of(layer, head);
                    let own = head * size..(head + 1) * size;
                    let held = Held {
                        keys: &keys[own.clone()],
                        values: &values[own],
                        slots: set.order(),
                        head_dim: size / set.capacity().max(1),
                    };
                    f(Head { layer, index: head, n_heads }, held);
                }
            })
        })??;
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
        let set = match cache.scope() {
            Scope::Global => 0,
            Scope::PerLayer => head.layer,
            Scope::PerHead => head.layer * head.n_heads + head.index,
        };
        for (sum, score) in sums[set].iter_mut().zip(score(head, held)) {
            *sum += score;
        }
        n += 1;
    })?;
    let sharing = (n / sums.len().max(1)).max(1) as f64;
    Ok(sums.into_iter().map(|set| set.into_iter().map(|sum| (sum / sharing) as f32).collect()).collect())
}

/// The dot product in eight chains, in the same order on every machine.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut chains = [0.0; 8];
    let (a_eights, b_eights) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a_eights.remainder().iter().zip(b_eights.remainder()).map(|(x, y)| x * y).sum();
    for (a, b) in a_eights.zip(b_eights) {
        for (chain, (x, y)) in chains.iter_mut().zip(a.iter().zip(b)) {
            *chain += x * y;
        }
    }
    chains.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_product_of_any_length() {
        for n in [1, 7, 8, 16, 19] {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let want: f32 = (0..n).map(|i| (i * i) as f32).sum();
            assert_eq!(dot(&a, &a).to_bits(), want.to_bits(), "whole numbers are exact");
        }
    }

    #[test]
    fn order_is_that_of_the_slots() {
        let held = Held { keys: &[1.0, 2.0, 3.0, 4.0], values: &[5.0, 6.0, 7.0, 8.0], slots: &[1, 0], head_dim: 2 };
        assert_eq!((held.len(), held.key(0), held.value(1)), (2, &[3.0, 4.0][..], &[5.0, 6.0][..]));
    }
}
