//! Reductions of attention weights, computed row by row, so that the matrix is never stored.

use std::collections::BTreeMap;

/// What to keep of the attention weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observe {
    /// The sum over queries of the weight that each key receives.
    pub column_sum: bool,
    /// The same from queries that see at most so many keys after that one, itself not counted: its first ages. One sum an
    /// age, no age twice.
    pub ages: Vec<usize>,
    /// The entropy of each query's row.
    pub entropy: bool,
    /// How many keys back each query looks on average.
    pub distance: bool,
    /// The rows of the last so many new tokens.
    pub last_rows: usize,
}

impl Observe {
    /// Whether anything is asked for.
    pub fn any(&self) -> bool {
        self.column_sum || !self.ages.is_empty() || self.entropy || self.distance || self.last_rows > 0
    }
}

/// What was seen of one row of the batch at one KV head. `G` query heads share it; keys are in order of positions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeadObservation {
    /// `[G, keys]`, or empty.
    pub column_sum: Vec<f32>,
    /// By age, `[G, keys]` each.
    pub young_sums: BTreeMap<usize, Vec<f32>>,
    /// `[T, G]` in nats, or empty.
    pub entropy: Vec<f32>,
    /// `[T, G]` in keys, or empty.
    pub distance: Vec<f32>,
    /// `[G, min(last_rows, T), keys]`, zero where a key is not visible; or empty.
    pub last_rows: Vec<f32>,
    group: usize,
    n_tokens: usize,
    n_keys: usize,
    kept_rows: usize,
}

impl HeadObservation {
    /// Zeros for what is to be observed of `n_tokens` new tokens over `n_keys` keys.
    pub fn new(observe: &Observe, group: usize, n_tokens: usize, n_keys: usize) -> Self {
        let kept_rows = observe.last_rows.min(n_tokens);
        Self {
            column_sum: vec![0.0; if observe.column_sum { group * n_keys } else { 0 }],
            young_sums: observe.ages.iter().map(|&age| (age, vec![0.0; group * n_keys])).collect(),
            entropy: vec![0.0; if observe.entropy { n_tokens * group } else { 0 }],
            distance: vec![0.0; if observe.distance { n_tokens * group } else { 0 }],
            last_rows: vec![0.0; group * kept_rows * n_keys],
            group,
            n_tokens,
            n_keys,
            kept_rows,
        }
    }

    /// Takes the weights `p` of the new token `token` at query head `head` of the group. Tokens come in order.
    pub(super) fn see(&mut self, token: usize, head: usize, p: &[f32]) {
        if !self.column_sum.is_empty() {
            for (sum, &w) in self.column_sum[head * self.n_keys..].iter_mut().zip(p) {
                *sum += w;
            }
        }
        for (&age, sums) in &mut self.young_sums {
            let first = p.len().saturating_sub(age.saturating_add(1));
            let sums = &mut sums[head * self.n_keys + first..];
            sums.iter_mut().zip(&p[first..]).for_each(|(sum, &w)| *sum += w);
        }
        if !self.distance.is_empty() {
            let back = p.iter().rev().enumerate().map(|(back, &w)| back as f64 * f64::from(w));
            self.distance[token * self.group + head] = back.sum::<f64>() as f32;
        }
        if !self.entropy.is_empty() {
            // f64: thousands of small terms; a weight of zero adds nothing.
            let h: f64 = p.iter().filter(|&&w| w > 0.0).map(|&w| -f64::from(w) * f64::from(w).ln()).sum();
            self.entropy[token * self.group + head] = h as f32;
        }
        let first_kept = self.n_tokens - self.kept_rows;
        if token >= first_kept && self.kept_rows > 0 {
            let at = (head * self.kept_rows + token - first_kept) * self.n_keys;
            self.last_rows[at..at + p.len()].copy_from_slice(p);
        }
    }
}
