//! Exact tails of two discrete distributions by ratios of neighbouring terms.
//!
//! Start somewhere with weight 1, walk both ways with the ratio `w(i+1) / w(i)`, and divide by the sum. No factorial
//! and no logarithm is formed, so the relative error is a few ulps a term. Starting at the mode, far tails underflow
//! to 0 harmlessly; starting at the end, small binomial coefficients are exact. Cost: the length of the support.

/// Largest `n` for which `C(n, n/2)` is finite by a wide margin.
const MAX_FROM_END: u64 = 1000;

/// Weights over `lo..=hi`, 1 at `start`, where `w(i+1) / w(i) = up(i).0 / up(i).1`.
fn weights(lo: u64, hi: u64, start: u64, up: impl Fn(u64) -> (f64, f64)) -> Vec<f64> {
    let mut w = vec![1.0; (hi - lo + 1) as usize];
    let at = (start - lo) as usize;
    for i in at + 1..w.len() {
        let (num, den) = up(lo + i as u64 - 1);
        w[i] = w[i - 1] * num / den;
    }
    for i in (0..at).rev() {
        let (num, den) = up(lo + i as u64);
        w[i] = w[i + 1] * den / num;
    }
    w
}

/// `(P(X <= x), P(X = x))` for `X ~ Binomial(n, 1/2)` and `x <= n`.
pub(crate) fn binomial_half(x: u64, n: u64) -> (f64, f64) {
    let start = if n <= MAX_FROM_END { 0 } else { n / 2 };
    let w = weights(0, n, start, |i| ((n - i) as f64, (i + 1) as f64));
    let total: f64 = w.iter().sum();
    let lower: f64 = w[..=x as usize].iter().sum();
    (lower / total, w[x as usize] / total)
}

/// `P(X >= x)` for the overlap `X` of two random sets of sizes `k1` and `k2` among `n`.
pub(crate) fn hypergeometric_sf(x: u64, k1: u64, k2: u64, n: u64) -> f64 {
    let lo = (k1 + k2).saturating_sub(n);
    let hi = k1.min(k2);
    if x <= lo {
        return 1.0;
    }
    if x > hi {
        return 0.0;
    }
    let mode = ((k1 + 1) * (k2 + 1) / (n + 2)).clamp(lo, hi);
    let up = |i: u64| ((k1 - i) as f64 * (k2 - i) as f64, (i + 1) as f64 * (n + i + 1 - k1 - k2) as f64);
    let w = weights(lo, hi, mode, up);
    let total: f64 = w.iter().sum();
    w[(x - lo) as usize..].iter().sum::<f64>() / total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_by_hand() {
        let (cdf, pmf) = binomial_half(1, 4);
        assert!((cdf - 5.0 / 16.0).abs() < 1e-15);
        assert!((pmf - 4.0 / 16.0).abs() < 1e-15);
        assert_eq!(binomial_half(0, 0), (1.0, 1.0));
    }

    #[test]
    fn hypergeometric_by_hand() {
        // Two pairs among 5: P(overlap 2) = 1/10, P(>= 1) = 7/10.
        assert!((hypergeometric_sf(2, 2, 2, 5) - 0.1).abs() < 1e-15);
        assert!((hypergeometric_sf(1, 2, 2, 5) - 0.7).abs() < 1e-15);
        assert!((hypergeometric_sf(0, 2, 2, 5) - 1.0).abs() < 1e-15);
        // 4 and 4 among 5 must share 3.
        assert!((hypergeometric_sf(3, 4, 4, 5) - 1.0).abs() < 1e-15);
        assert!((hypergeometric_sf(4, 4, 4, 5) - 0.2).abs() < 1e-15);
    }
}
