//! Redundancy of a token's key: its similarity to other keys.
//!
//! ```text
//! S(i, j)       = k_i . k_j / (|k_i| |k_j|)       for i != j, else 0
//! S(i, last(i)) = 0                               last(i) = the newest j with S(i, j) > 1/2, where there is one
//! redundancy(j) = softmax over j of  1/n sum over i of S(i, j)
//! ```
//!
//! so that of similar keys the newest does not count as redundant.
//!
//! **Differs from R-KV in:** a row in which nothing is similar changes nothing; its code takes the first token then.
//!
//! Cost: `O(n D)` for the column means, since `sum_i S(i, j) = k'_j . sum_i k'_i - 1` with `k' = k / |k|`, and a scan from the
//! newest key down to the first similar one for each token; the matrix is never made.
//!
//! # References
//! R-KV (arXiv 2505.24133), section 3.2; `cal_similarity` in its code.

use epikv_model::cache::HeadView;

use crate::formulas::numbers::{dot, norm, softmax};

/// Added to lengths, as in R-KV.
const EPS: f64 = 1e-8;

/// The redundancy of what a head holds, `[n]`, summing to 1.
pub fn redundancy(held: HeadView<'_>, similar: f32) -> Vec<f64> {
    let (n, d) = (held.len(), held.head_dim);
    let mut unit = Vec::with_capacity(n * d);
    let mut total = vec![0.0; d];
    for place in 0..n {
        let key = held.key(place);
        let length = norm(key) + EPS;
        for (sum, &x) in total.iter_mut().zip(key) {
            let x = f64::from(x) / length;
            *sum += x;
            unit.push(x as f32);
        }
    }
    let key = |place: usize| &unit[place * d..(place + 1) * d];
    let others = |place: usize| -> f64 {
        key(place).iter().zip(&total).map(|(&x, sum)| f64::from(x) * (sum - f64::from(x))).sum()
    };
    let mut columns: Vec<f64> = (0..n).map(others).collect();
    for i in 0..n {
        let similar = (0..n).rev().filter(|&j| j != i).map(|j| (j, dot(key(i), key(j)))).find(|(_, s)| *s > similar);
        if let Some((j, s)) = similar {
            columns[j] -= f64::from(s);
        }
    }
    softmax(&columns.iter().map(|column| column / n as f64).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the matrix.
    fn plain(held: HeadView<'_>, similar: f32) -> Vec<f64> {
        let n = held.len();
        let norm = |key: &[f32]| f64::from(dot(key, key)).sqrt() + EPS;
        let mut matrix = vec![vec![0.0; n]; n];
        for (i, row) in matrix.iter_mut().enumerate() {
            for (j, s) in row.iter_mut().enumerate().filter(|(j, _)| *j != i) {
                let (a, b) = (held.key(i), held.key(j));
                *s = a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum::<f64>() / (norm(a) * norm(b));
            }
            if let Some(last) = (0..n).rfind(|&j| row[j] > f64::from(similar)) {
                row[last] = 0.0;
            }
        }
        let means: Vec<f64> = (0..n).map(|j| matrix.iter().map(|row| row[j]).sum::<f64>() / n as f64).collect();
        let sum: f64 = means.iter().map(|m| m.exp()).sum();
        means.iter().map(|m| m.exp() / sum).collect()
    }

    #[test]
    fn without_the_matrix_it_is_the_same() {
        let keys: Vec<f32> =
            (0..40 * 6).map(|i: u32| (i.wrapping_mul(2_654_435_761) % 997) as f32 / 400.0 - 1.0).collect();
        let slots: Vec<u32> = (0..40).rev().collect();
        let held = HeadView { keys: &keys, values: &keys, slots: &slots, head_dim: 6 };
        // At 2 nothing is similar.
        for similar in [0.0, 0.2, 0.5, 0.9, 2.0] {
            for (got, want) in redundancy(held, similar).iter().zip(plain(held, similar)) {
                assert!((got - want).abs() < 1e-7, "{similar}: {got} and {want}");
            }
        }
    }

    #[test]
    fn the_newest_of_equals_is_not_blamed() {
        let held =
            HeadView { keys: &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0], values: &[0.0; 6], slots: &[0, 1, 2], head_dim: 2 };
        let r = redundancy(held, 0.5);
        // Row 0 spares token 1 and row 1 spares token 0: nothing else is similar to either.
        assert!((r[0] - r[1]).abs() < 1e-8 && (r[2] - 1.0 / 3.0).abs() < 1e-8, "{r:?}");
        let three = HeadView { keys: &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0], ..held };
        let r = redundancy(three, 0.5);
        assert!(r[0] > r[2] && r[1] > r[2], "{r:?}");
    }
}
