//! Training sequences and their packing.

use std::ops::Range;

/// A sequence to learn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Token ids; positions count from 0.
    pub tokens: Vec<u32>,
    /// Weight of each token as something to predict; 0 where it is given, and always for the first.
    pub weights: Vec<f32>,
}

impl Example {
    /// Everything from `first` on is to be predicted, with weight 1.
    pub fn predict_from(tokens: Vec<u32>, first: usize) -> Self {
        let weights = (0..tokens.len()).map(|i| if i >= first.max(1) { 1.0 } else { 0.0 }).collect();
        Self { tokens, weights }
    }

    /// Rows that it takes in a forward pass: the last token is only predicted.
    pub(crate) fn n_rows(&self) -> usize {
        self.tokens.len().saturating_sub(1)
    }
}

/// Examples side by side in one forward pass.
#[derive(Debug)]
pub(crate) struct Packed {
    /// `[T]`.
    pub(crate) inputs: Vec<u32>,
    /// `[T]`.
    pub(crate) targets: Vec<u32>,
    /// `[T]`.
    pub(crate) weights: Vec<f32>,
    /// Rows of each example.
    pub(crate) lengths: Vec<usize>,
}

impl Packed {
    pub(crate) fn new(examples: &[Example]) -> Self {
        let rows = |f: fn(&Example) -> &[u32]| examples.iter().flat_map(f).copied().collect();
        Self {
            inputs: rows(|e| &e.tokens[..e.n_rows()]),
            targets: rows(|e| &e.tokens[e.tokens.len() - e.n_rows()..]),
            weights: examples.iter().flat_map(|e| &e.weights[e.weights.len() - e.n_rows()..]).copied().collect(),
            lengths: examples.iter().map(Example::n_rows).collect(),
        }
    }
}

/// Cuts a batch into runs of examples with at most `max_rows` rows each, at least one example in each.
pub(crate) fn parts(examples: &[Example], max_rows: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut first, mut rows) = (0, 0);
    for (i, example) in examples.iter().enumerate() {
        if i > first && rows + example.n_rows() > max_rows {
            parts.push(first..i);
            (first, rows) = (i, 0);
        }
        rows += example.n_rows();
    }
    if first < examples.len() {
        parts.push(first..examples.len());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_next_tokens() {
        let packed = Packed::new(&[Example::predict_from(vec![5, 6, 7], 2), Example::predict_from(vec![8, 9], 0)]);
        assert_eq!(packed.inputs, [5, 6, 8]);
        assert_eq!(packed.targets, [6, 7, 9]);
        assert_eq!(packed.weights, [0.0, 1.0, 1.0]);
        assert_eq!(packed.lengths, [2, 1]);
    }

    #[test]
    fn parts_keep_the_order_and_the_limit() {
        let examples: Vec<Example> = [4, 4, 9, 2].map(|n| Example::predict_from(vec![0; n + 1], 0)).into();
        assert_eq!(parts(&examples, 8), [0..2, 2..3, 3..4]);
        assert!(parts(&[], 8).is_empty());
    }
}
