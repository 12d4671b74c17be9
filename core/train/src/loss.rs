//! Weighted cross-entropy and its gradient.

/// How well a set of tokens was predicted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Score {
    /// Sum of weighted cross-entropies, in nats.
    pub loss: f64,
    /// Sum of the weights.
    pub weight: f64,
    /// Tokens to predict.
    pub n_tokens: usize,
    /// Of them, the ones whose logit was the largest.
    pub n_right: usize,
}

impl Score {
    /// Mean cross-entropy; `None` without weight.
    pub fn mean_loss(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.loss / self.weight)
    }

    /// Share of tokens that were right; `None` without tokens.
    pub fn accuracy(&self) -> Option<f64> {
        (self.n_tokens > 0).then(|| self.n_right as f64 / self.n_tokens as f64)
    }

    /// Adds another set.
    pub fn add(&mut self, other: &Self) {
        self.loss += other.loss;
        self.weight += other.weight;
        self.n_tokens += other.n_tokens;
        self.n_right += other.n_right;
    }
}

/// Scores rows of logits and replaces them by the gradient of `scale * loss`: `scale * weight * (softmax - one-hot)`.
///
/// # Shapes
/// `logits`: `[T, vocab]`; `targets`, `weights`: `[T]`. Returns whether each row with weight was right.
pub(crate) fn cross_entropy(
    logits: &mut [f32],
    targets: &[u32],
    weights: &[f32],
    scale: f32,
) -> (Score, Vec<Option<bool>>) {
    let vocab = logits.len() / targets.len().max(1);
    let mut score = Score::default();
    let rows = logits.chunks_exact_mut(vocab).zip(targets.iter().zip(weights));
    let right = rows.map(|(row, (&target, &weight))| {
        if weight == 0.0 {
            row.fill(0.0);
            return None;
        }
        let target = target as usize;
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let right = row[..target].iter().all(|&v| v < row[target]) && row[target] >= top;
        let at_target = f64::from(row[target] - top);
        epikv_kernels::pointwise::softmax(row);
        // Below what f32 can hold the difference of logits is the logarithm.
        let likelihood = f64::from(row[target]);
        let log = if likelihood > 1e-30 { likelihood.ln() } else { at_target };
        row[target] -= 1.0;
        for v in row.iter_mut() {
            *v *= scale * weight;
        }
        score.loss -= f64::from(weight) * log;
        score.weight += f64::from(weight);
        score.n_tokens += 1;
        score.n_right += usize::from(right);
        Some(right)
    });
    let right = right.collect();
    (score, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradient_is_softmax_minus_one_hot() {
        let mut logits = [0.0, 2.0_f32.ln(), 5.0, 5.0];
        let (score, right) = cross_entropy(&mut logits, &[1, 1], &[3.0, 0.0], 0.5);
        assert!((score.loss - 3.0 * 1.5_f64.ln()).abs() < 1e-6);
        assert_eq!((score.n_tokens, score.n_right, right), (1, 1, vec![Some(true), None]));
        for (got, want) in logits.iter().zip([0.5, -0.5, 0.0, 0.0]) {
            assert!((got - want).abs() < 1e-6);
        }
    }

    #[test]
    fn among_equals_the_lowest_id_is_chosen() {
        let (score, _) = cross_entropy(&mut [1.0, 1.0, 0.0, 1.0, 1.0, 0.0], &[0, 1], &[1.0, 1.0], 1.0);
        assert_eq!((score.n_right, score.accuracy()), (1, Some(0.5)));
        assert_eq!(Score::default().mean_loss(), None);
    }
}
