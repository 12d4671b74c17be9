//! Differences of a tapped tensor from one token to the next.

use candle_core::Tensor;
use epikv_kernels::lanes::dot;

use super::elements::with_f32;
use crate::error::Result;
use crate::taps::point::Reduce;

/// Norms below this count as this much, so that a zero vector has a direction: 0 similarity with everything.
const SMALLEST_NORM: f32 = 1e-8;

/// The step to each row of `[n, d]` from the row before it; the first comes after `before`, or has none.
pub(super) fn steps(x: &Tensor, before: Option<&Tensor>, how: Reduce) -> Result<Vec<Option<f32>>> {
    let of = match how {
        Reduce::StepCosine => cosine_distance,
        _ => distance,
    };
    let n = x.dim(0)?;
    with_f32(x, |own| -> Result<_> {
        let d = own.len() / n;
        let mut values = Vec::with_capacity(n);
        values.push(before.map(|before| with_f32(before, |before| of(&own[..d], before))).transpose()?);
        values.extend(own.chunks_exact(d).zip(own[d..].chunks_exact(d)).map(|(a, b)| Some(of(b, a))));
        Ok(values)
    })?
}

/// `|a - b|` with the sum in lane order.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    let difference: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    dot(&difference, &difference).sqrt()
}

/// `1 - cos(a, b)`, in [0, 2].
fn cosine_distance(a: &[f32], b: &[f32]) -> f32 {
    let norm = |v: &[f32]| dot(v, v).sqrt().max(SMALLEST_NORM);
    1.0 - (dot(a, b) / (norm(a) * norm(b))).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert!((distance(&[1.0, 2.0], &[4.0, -2.0]) - 5.0).abs() < 1e-6);
        assert!((cosine_distance(&[1.0, 0.0], &[0.0, 3.0]) - 1.0).abs() < 1e-6);
        assert!((cosine_distance(&[2.0, 0.0], &[-1.0, 0.0]) - 2.0).abs() < 1e-6);
        assert!((cosine_distance(&[0.0, 0.0], &[1.0, 0.0]) - 1.0).abs() < 1e-6, "nothing has no direction");
    }
}
