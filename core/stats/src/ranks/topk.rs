//! The `k` largest scores, with ties decided by position, in `O(n)`.
//!
//! Score order is not time order: selected indices come back ascending. `-0.0` and `+0.0` tie.

use crate::ranks::radix::ordered_key;
use crate::ranks::rank::ordered_bits;

/// Which of two equal scores is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ties {
    /// The newer position (higher index): what eviction uses.
    #[default]
    Newer,
    /// The older position (lower index): what most array libraries do.
    Older,
}

/// Indices of the `k` largest of `scores` (`[n]`), ascending; all of them for `k >= n`.
///
/// Undefined (`None`) when a score is `NaN`.
pub fn top_k(scores: &[f32], k: usize, ties: Ties) -> Option<Vec<usize>> {
    if scores.iter().any(|s| s.is_nan()) {
        return None;
    }
    Some(select(scores.len(), k, ties, |i| ordered_key(scores[i])))
}

/// [`top_k`] for f64 scores.
///
/// Undefined (`None`) when a score is `NaN`.
pub fn top_k_f64(scores: &[f64], k: usize, ties: Ties) -> Option<Vec<usize>> {
    if scores.iter().any(|s| s.is_nan()) {
        return None;
    }
    Some(select(scores.len(), k, ties, |i| ordered_bits(scores[i])))
}

/// Keys with their places are distinct, so the set does not depend on the algorithm.
fn select<K: Ord>(n: usize, k: usize, ties: Ties, key: impl Fn(usize) -> K) -> Vec<usize> {
    let place = |i: usize| match ties {
        Ties::Newer => i,
        Ties::Older => !i,
    };
    let mut indices: Vec<usize> = (0..n).collect();
    if k == 0 {
        indices.clear();
    } else if k < n {
        indices.select_nth_unstable_by(k - 1, |&a, &b| (key(b), place(b)).cmp(&(key(a), place(a))));
        indices.truncate(k);
    }
    indices.sort_unstable();
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_newer_or_the_older() {
        let equal = [0.5_f32; 5];
        assert_eq!(top_k(&equal, 2, Ties::Newer), Some(vec![3, 4]));
        assert_eq!(top_k(&equal, 2, Ties::Older), Some(vec![0, 1]));
        assert_eq!(top_k(&[0.0, -0.0, -1.0], 1, Ties::Newer), Some(vec![1]));
    }

    #[test]
    fn largest_in_time_order() {
        let scores = [3.0_f32, -1.0, 7.0, f32::INFINITY, 2.0];
        assert_eq!(top_k(&scores, 3, Ties::Newer), Some(vec![0, 2, 3]));
        assert_eq!(top_k_f64(&scores.map(f64::from), 3, Ties::Newer), Some(vec![0, 2, 3]));
        assert_eq!(top_k(&scores, 0, Ties::Newer), Some(vec![]));
        assert_eq!(top_k(&scores, 9, Ties::Newer), Some(vec![0, 1, 2, 3, 4]));
        assert_eq!(top_k(&[f32::NAN], 1, Ties::Newer), None);
    }
}
