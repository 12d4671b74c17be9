//! pass@k: the chance that at least one of `k` samples is right, from `n >= k` samples with `c` right ones.
//!
//! ```text
//! pass@k = 1 - C(n-c, k) / C(n, k)
//! ```
//!
//! as a product of `min(k, c)` factors, without factorials. Greedy decoding gives `n = 1` and hence only pass@1, which
//! is called accuracy.
//!
//! # References
//!
//! Chen et al. 2021, arXiv 2107.03374, equation 1.

use crate::moments;

/// The unbiased estimate for one problem.
///
/// Undefined (`None`) for `k = 0`, for more draws than samples, and for more right samples than samples.
pub fn pass_at_k(n: u64, correct: u64, k: u64) -> Option<f64> {
    if k == 0 || k > n || correct > n {
        return None;
    }
    if n - correct < k {
        return Some(1.0);
    }
    // C(n-c, k) / C(n, k) is symmetric in c and k: prod over the smaller of (n - larger - i) / (n - i).
    let (few, many) = (k.min(correct), k.max(correct));
    let miss: f64 = (0..few).map(|i| (n - many - i) as f64 / (n - i) as f64).product();
    Some(1.0 - miss)
}

/// The mean over problems.
#[derive(Debug, Clone, PartialEq)]
pub struct PassAtK {
    /// The estimate of each problem.
    pub per_problem: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// Standard error of the mean over problems; `None` for one problem.
    pub se_problems: Option<f64>,
}

/// pass@k over problems given as `(samples, right samples)`.
///
/// Undefined (`None`) without problems, or when it is undefined for one of them.
pub fn pass_at_k_over(problems: &[(u64, u64)], k: u64) -> Option<PassAtK> {
    let per_problem = problems.iter().map(|&(n, correct)| pass_at_k(n, correct, k)).collect::<Option<Vec<_>>>()?;
    Some(PassAtK {
        mean: moments::mean(&per_problem)?,
        se_problems: moments::standard_error(&per_problem),
        per_problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // 1 - C(11,4)/C(16,4) = 1 - 330/1820
        let got = pass_at_k(16, 5, 4).expect("k <= n");
        assert!((got - (1.0 - 330.0 / 1820.0)).abs() < 1e-15);
        assert_eq!(pass_at_k(16, 0, 4), Some(0.0));
        assert_eq!(pass_at_k(16, 16, 4), Some(1.0));
        assert_eq!(pass_at_k(16, 13, 4), Some(1.0));
        assert_eq!(pass_at_k(4, 1, 1), Some(0.25));
        // All samples drawn: one right is enough.
        assert_eq!(pass_at_k(5, 1, 5), Some(1.0));
    }

    #[test]
    fn undefined() {
        assert_eq!(pass_at_k(4, 1, 0), None);
        assert_eq!(pass_at_k(4, 1, 5), None);
        assert_eq!(pass_at_k(4, 5, 1), None);
        assert_eq!(pass_at_k_over(&[], 1), None);
        assert_eq!(pass_at_k_over(&[(4, 2)], 1).expect("defined").se_problems, None);
    }
}
