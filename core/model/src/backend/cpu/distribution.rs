//! Reductions of rows of logits, with sums in f64 in the order of the vocabulary.

use candle_core::Tensor;

use super::elements::with_f32;
use crate::backend::operations::Distribution;
use crate::error::Result;

/// What is kept of each row of `[n, vocab]`, with the surprisal of the token in `next`.
pub(super) fn distributions(logits: &Tensor, next: &[Option<u32>]) -> Result<Vec<Distribution>> {
    let vocab = logits.dim(1)?;
    with_f32(logits, |all| all.chunks_exact(vocab).zip(next).map(|(row, &next)| of(row, next)).collect())
}

fn of(logits: &[f32], next: Option<u32>) -> Distribution {
    let (mut best, mut second) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for &logit in logits {
        if logit > best {
            (best, second) = (logit, best);
        } else if logit > second {
            second = logit;
        }
    }
    let (mut sum, mut weighted) = (0.0_f64, 0.0_f64);
    for &logit in logits {
        let below = f64::from(logit - best);
        let weight = below.exp();
        sum += weight;
        weighted += if weight > 0.0 { weight * below } else { 0.0 };
    }
    // -sum p ln p with p = exp(below) / sum and ln p = below - ln sum.
    let entropy = (sum.ln() - weighted / sum).max(0.0) as f32;
    let log_sum = f64::from(best) + sum.ln();
    let surprisal = next.and_then(|id| logits.get(id as usize));
    Distribution {
        entropy,
        margin: best - second,
        surprisal: surprisal.map(|&logit| (log_sum - f64::from(logit)).max(0.0) as f32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let even = of(&[1.0; 4], Some(2));
        assert!((f64::from(even.entropy) - 4.0_f64.ln()).abs() < 1e-6);
        assert!((f64::from(even.surprisal.expect("asked for")) - 4.0_f64.ln()).abs() < 1e-6);
        assert!(even.margin.abs() < 1e-6);
        let certain = |next| of(&[200.0, -f32::MAX, 3.0], next);
        assert_eq!(certain(Some(0)), Distribution { entropy: 0.0, margin: 197.0, surprisal: Some(0.0) });
        assert!((certain(Some(2)).surprisal.expect("asked for") - 197.0).abs() < 1e-4);
        assert_eq!((certain(None).surprisal, certain(Some(9)).surprisal), (None, None));
    }
}
