//! How a `[T, d]` point moves from each token of a row to the next, also across calls.

use candle_core::Tensor;
use epikv_kernels::lanes::dot;

use crate::cache::RowCache;
use crate::error::{Error, Result};
use crate::ops::{from_rows, kernels_apply, with_f32};
use crate::taps::{Reduce, TapPoint};

/// Norms below this count as this much, so that a zero vector has a direction: 0 similarity with everything.
const SMALLEST_NORM: f32 = 1e-8;

/// One value a token, null at the first token that a cache ever takes.
pub(super) type Steps = Vec<Option<f32>>;

/// Each of the reductions `reduces` of the steps at a point; the last token of a row is kept with its cache.
pub(super) fn steps(
    point: TapPoint,
    reduces: &[Reduce],
    x: &Tensor,
    rows: &[usize],
    caches: &mut [&mut RowCache],
) -> Result<Vec<Steps>> {
    let key = match point {
        TapPoint::Embed => 0,
        TapPoint::ResidPost(layer) => layer + 1,
        TapPoint::FinalNorm => usize::MAX,
        _ => {
            return Err(Error::Request {
                what: "step between tokens",
                expected: "a point of shape [T, d]".to_owned(),
                got: format!("{point:?}"),
            });
        }
    };
    // On another device the rows come over whole; the steps are the same sums.
    let x = if kernels_apply(x) { x.clone() } else { x.to_device(&candle_core::Device::Cpu)? };
    let mut all = vec![Steps::new(); reduces.len()];
    let mut first = 0;
    for (cache, &n) in caches.iter_mut().zip(rows).filter(|(_, n)| **n > 0) {
        let own = x.narrow(0, first, n)?;
        let last = with_f32(&own, |own| -> Result<Vec<f32>> {
            let d = own.len() / n;
            for (values, &reduce) in all.iter_mut().zip(reduces) {
                let of = |now: &[f32], before: &[f32]| match reduce {
                    Reduce::StepCosine => cosine_distance(now, before),
                    _ => distance(now, before),
                };
                let before = cache.previous.get(&key);
                values.push(before.map(|before| with_f32(before, |before| of(&own[..d], before))).transpose()?);
                values.extend(own.chunks_exact(d).zip(own[d..].chunks_exact(d)).map(|(a, b)| Some(of(b, a))));
            }
            Ok(own[own.len() - d..].to_vec())
        })??;
        let d = last.len();
        cache.previous.insert(key, from_rows(last, &[1, d])?);
        first += n;
    }
    Ok(all)
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
