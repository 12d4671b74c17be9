//! Standard deviation over the channels of a vector, scaled by the extremes of other vectors, as in `LagKV`.
//!
//! ```text
//! x'_d = (x_d - min_d) / (max_d - min_d + 1e-9)      min, max of channel d over the vectors of the scale
//! s(x) = Std_d(x')                                   unbiased; of x itself where there is no scale
//! ```

use super::numbers::{deviation, softmax};

/// Added to the width of a channel: it keeps a constant one finite.
const WIDTH_EPS: f64 = 1e-9;

/// Smallest and largest value of each channel, `[D]`, over `n` vectors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extremes {
    n: usize,
    ends: Vec<(f64, f64)>,
}

impl Extremes {
    /// Those of some vectors.
    pub(crate) fn of<'v>(vectors: impl IntoIterator<Item = &'v [f64]>) -> Self {
        let mut extremes = Self::default();
        vectors.into_iter().for_each(|vector| extremes.add(vector));
        extremes
    }

    /// Takes one more vector in.
    pub(crate) fn add(&mut self, vector: &[f64]) {
        self.ends.resize(vector.len(), (f64::INFINITY, f64::NEG_INFINITY));
        for (ends, &x) in self.ends.iter_mut().zip(vector) {
            *ends = (ends.0.min(x), ends.1.max(x));
        }
        self.n += 1;
    }

    /// Vectors seen.
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    /// Where each channel of a vector lies between the extremes.
    fn scaled(&self, vector: &[f64]) -> Vec<f64> {
        vector.iter().zip(&self.ends).map(|(&x, &(lo, hi))| (x - lo) / (hi - lo + WIDTH_EPS)).collect()
    }
}

/// The spread of a vector that holds the channels of several heads, `[H D]`: one number a head, `[H]`.
pub(crate) fn spreads(vector: &[f64], head_dim: usize, scale: Option<&Extremes>) -> Vec<f64> {
    let of_heads = |vector: &[f64]| vector.chunks_exact(head_dim.max(1)).map(deviation).collect();
    scale.map_or_else(|| of_heads(vector), |scale| of_heads(&scale.scaled(vector)))
}

/// The spread of a vector of one head, `[D]`.
pub(crate) fn spread(vector: &[f64], scale: Option<&Extremes>) -> f64 {
    scale.map_or_else(|| deviation(vector), |scale| deviation(&scale.scaled(vector)))
}

/// What each vector of a chunk of one head weighs by its spread on the scale of the chunk after: a softmax, `[chunk]`.
pub(crate) fn weights(chunk: &[Vec<f64>], after: &[Vec<f64>]) -> Vec<f64> {
    let scale = Extremes::of(after.iter().map(Vec::as_slice));
    softmax(&chunk.iter().map(|vector| spread(vector, Some(&scale))).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_on_the_scale_it_is_given() {
        let token = [1.0, 3.0];
        assert!((spread(&token, None) - 2.0_f64.sqrt()).abs() < 1e-12);
        let scale = Extremes::of([[0.0, 1.0].as_slice(), [2.0, 5.0].as_slice()]);
        assert_eq!(scale.len(), 2);
        assert!(spread(&token, Some(&scale)) < 1e-8, "both channels are half way");
        assert_eq!(spreads(&[1.0, 3.0, 5.0, 7.0], 2, None), [2.0_f64.sqrt(); 2]);
    }

    #[test]
    fn equal_vectors_weigh_the_same() {
        let chunk = vec![vec![1.0, 2.0]; 4];
        assert_eq!(weights(&chunk, &chunk), [0.25; 4]);
    }
}
