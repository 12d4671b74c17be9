//! Kendall's tau-b in `O(n log n)`.
//!
//! ```text
//! tau_b = (C - D) / sqrt((P - Tx) (P - Ty)),    P = n (n-1) / 2
//! ```
//!
//! `C` and `D` are concordant and discordant pairs, `Tx` and `Ty` pairs that tie in x and in y. Sorted by (x, y), the
//! discordant pairs are the inversions of y, counted while merging. All counts are integers.
//!
//! # References
//!
//! Kendall 1945, *Biometrika* 33:239; Knight 1966, *JASA* 61:436.

use crate::ranks::rank::Midranks;

/// Tau-b of `x` and `y`, both `[n]`.
///
/// Undefined (`None`) when a column is constant, has fewer than two values, or holds a `NaN`.
///
/// # Panics
///
/// If the lengths differ.
pub fn kendall_tau_b(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "both columns have one value a token");
    let (x, y) = (Midranks::new(x)?, Midranks::new(y)?);
    let mut pairs: Vec<(u64, u64)> = x.twice().iter().copied().zip(y.twice().iter().copied()).collect();
    pairs.sort_unstable();
    let tied_both = tied_pairs(&pairs);
    let mut in_y: Vec<u64> = pairs.iter().map(|p| p.1).collect();
    let tied_x = tied_pairs(&pairs.iter().map(|p| p.0).collect::<Vec<_>>());
    let mut discordant = 0;
    merge_sort(&mut in_y, |a, b| a > b, |left, _| discordant += left.len() as u64);
    let tied_y = tied_pairs(&in_y); // sorted by now
    let n = pairs.len() as u64;
    let all = n * n.saturating_sub(1) / 2;
    let (free_x, free_y) = (all - tied_x, all - tied_y);
    if free_x == 0 || free_y == 0 {
        return None;
    }
    // C + D = P - Tx - Ty + Txy
    let untied = all + tied_both - tied_x - tied_y;
    let excess = (untied - discordant) as f64 - discordant as f64;
    Some((excess / (free_x as f64 * free_y as f64).sqrt()).clamp(-1.0, 1.0))
}

/// Pairs inside runs of equal neighbours.
fn tied_pairs<T: PartialEq>(sorted: &[T]) -> u64 {
    sorted.chunk_by(|a, b| a == b).map(|run| run.len() as u64 * (run.len() as u64 - 1) / 2).sum()
}

/// Sorts `values` upwards, bottom up, and reports every pair that was in the wrong order: whenever `right` overtakes
/// values that `inverted(left, right)`, a strict or non-strict "greater than", `report` gets them all and `right`.
pub(crate) fn merge_sort<T: Copy>(
    values: &mut Vec<T>,
    inverted: impl Fn(&T, &T) -> bool,
    mut report: impl FnMut(&[T], &T),
) {
    let n = values.len();
    let mut from = std::mem::take(values);
    let mut to = from.clone();
    let mut width = 1;
    while width < n {
        for start in (0..n).step_by(2 * width) {
            let (mid, end) = ((start + width).min(n), (start + 2 * width).min(n));
            let (mut i, mut j) = (start, mid);
            for slot in &mut to[start..end] {
                if i < mid && (j == end || !inverted(&from[i], &from[j])) {
                    *slot = from[i];
                    i += 1;
                } else {
                    report(&from[i..mid], &from[j]);
                    *slot = from[j];
                    j += 1;
                }
            }
        }
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    *values = from;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_pairs(x: &[f64], y: &[f64]) -> f64 {
        let (mut excess, mut free_x, mut free_y) = (0.0, 0.0_f64, 0.0);
        for i in 0..x.len() {
            for j in 0..i {
                let (a, b) = (x[i] - x[j], y[i] - y[j]);
                let (a, b) = (if a == 0.0 { 0.0 } else { a.signum() }, if b == 0.0 { 0.0 } else { b.signum() });
                excess += a * b;
                free_x += a * a;
                free_y += b * b;
            }
        }
        excess / (free_x * free_y).sqrt()
    }

    #[test]
    fn by_hand() {
        // Pairs: 5 concordant, 1 discordant of 6.
        let tau = kendall_tau_b(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 4.0, 3.0]).expect("defined");
        assert!((tau - 4.0 / 6.0).abs() < 1e-15);
    }

    #[test]
    fn ties_as_by_pairs() {
        let x = [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 0.0, -0.0];
        let y = [2.0, 2.0, 1.0, 5.0, 1.0, 5.0, 0.0, 1.0];
        let tau = kendall_tau_b(&x, &y).expect("defined");
        assert!((tau - by_pairs(&x, &y)).abs() < 1e-15);
        let reversed = kendall_tau_b(&x, &x.map(|v| -v)).expect("defined");
        assert!((reversed + 1.0).abs() < 1e-15);
    }

    #[test]
    fn undefined() {
        assert_eq!(kendall_tau_b(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(kendall_tau_b(&[1.0], &[1.0]), None);
        assert_eq!(kendall_tau_b(&[], &[]), None);
        assert_eq!(kendall_tau_b(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }
}
