//! How likely a draft is: the log-probability of its tokens, each after those before it.
//!
//! A row that reads a draft has the logits for it anyway. Summed in f64 in the order of the tokens, so that the bits depend
//! on nothing but the row.

use epikv_kernels::pointwise::log_sum_exp;

/// The log-probability of the first tokens of a draft: of all of them, unless it is longer than one pass reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DraftScore {
    /// Tokens that are summed over.
    pub n_tokens: usize,
    /// Sum of `ln p`, in nats.
    pub log_prob: f64,
}

impl DraftScore {
    /// The score of as many draft tokens as there are rows of logits; `None` if a logit is not a number.
    pub(super) fn of(draft: &[u32], logits: &[&[f32]]) -> Option<Self> {
        let of_token = |(&id, row): (&u32, &&[f32])| Some(f64::from(*row.get(id as usize)?) - log_sum_exp(row));
        let log_prob = draft.iter().zip(logits).map(of_token).sum::<Option<f64>>()?;
        let n_tokens = draft.len().min(logits.len());
        (log_prob.is_finite() && n_tokens > 0).then_some(Self { n_tokens, log_prob })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let even = [1.0_f32; 4];
        let sure = [0.0, 200.0, 0.0, 0.0];
        let score = DraftScore::of(&[2, 1, 3], &[&even, &sure]).expect("numbers");
        assert_eq!(score.n_tokens, 2);
        assert!((score.log_prob + 4.0_f64.ln()).abs() < 1e-6, "{score:?}");
        assert_eq!(DraftScore::of(&[0], &[&[f32::NAN, 0.0]]), None);
        assert_eq!(DraftScore::of(&[], &[]), None);
    }
}
