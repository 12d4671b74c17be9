//! Midranks and the tie term, kept as integers.
//!
//! Values that tie share the mean of the ranks they occupy: a group of `t` values with `b` values before it has
//! midrank `b + (t + 1)/2`. Doubled midranks are integers, so everything built on them is exact until the last
//! division. `-0.0` and `+0.0` tie; infinities are ordinary extreme values.
//!
//! # References
//!
//! Kendall & Gibbons 1990, *Rank Correlation Methods*, chapter 3 (ties).

/// Doubled midranks of one column and its tie term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Midranks {
    twice: Vec<u64>,
    tie_sum: u128,
}

impl Midranks {
    /// Ranks `x` (`[n]`, any order). Cost `O(n log n)`.
    ///
    /// Undefined (`None`) when `x` holds a `NaN`.
    pub fn new(x: &[f64]) -> Option<Self> {
        if x.iter().any(|v| v.is_nan()) {
            return None;
        }
        let mut order: Vec<(u64, usize)> = x.iter().enumerate().map(|(i, &v)| (ordered_bits(v), i)).collect();
        order.sort_unstable();
        let mut twice = vec![0; x.len()];
        let mut tie_sum = 0;
        let mut before = 0_u64;
        for group in order.chunk_by(|a, b| a.0 == b.0) {
            let size = group.len() as u64;
            for &(_, i) in group {
                twice[i] = 2 * before + size + 1;
            }
            tie_sum += cube_minus_self(size);
            before += size;
        }
        Some(Self { twice, tie_sum })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.twice.len()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.twice.is_empty()
    }

    /// Twice the midrank of each value, `[n]`, in the order of the input.
    pub fn twice(&self) -> &[u64] {
        &self.twice
    }

    /// The midranks, `[n]`, in the order of the input.
    pub fn ranks(&self) -> Vec<f64> {
        self.twice.iter().map(|&r| r as f64 / 2.0).collect()
    }

    /// `T = sum(t^3 - t)` over the groups of tied values.
    pub fn tie_sum(&self) -> u128 {
        self.tie_sum
    }

    /// `(n^3 - n - T) / 3`, the sum of squares of the doubled midranks about their mean; 0 when all values tie.
    pub fn spread(&self) -> u128 {
        spread(self.twice.len() as u64, self.tie_sum)
    }
}

/// Midranks of `x` (`[n]`, 1-based, mean of tied ranks), as `scipy.stats.rankdata(method="average")`.
///
/// Undefined (`None`) when `x` holds a `NaN`.
pub fn midranks(x: &[f64]) -> Option<Vec<f64>> {
    Midranks::new(x).map(|m| m.ranks())
}

/// `(n^3 - n - T) / 3`. Each `t^3 - t` is a product of three neighbours, so the division has no remainder.
pub(crate) fn spread(n: u64, tie_sum: u128) -> u128 {
    (cube_minus_self(n) - tie_sum) / 3
}

/// `t^3 - t`.
pub(crate) fn cube_minus_self(t: u64) -> u128 {
    let t = u128::from(t);
    t * t * t - t
}

/// A key that sorts as the number does; `-0.0` is folded onto `+0.0`.
pub(crate) fn ordered_bits(x: f64) -> u64 {
    const SIGN: u64 = 1 << 63;
    let bits = (x + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_zeros_tie() {
        let ranks = midranks(&[0.0, -0.0, 1.5, -2.0, 1.5, 1.5]);
        assert_eq!(ranks, Some(vec![2.5, 2.5, 5.0, 1.0, 5.0, 5.0]));
    }

    #[test]
    fn infinities_are_extremes() {
        let ranks = midranks(&[f64::INFINITY, 1.0, f64::NEG_INFINITY, 1.0, f64::INFINITY]);
        assert_eq!(ranks, Some(vec![4.5, 2.5, 1.0, 2.5, 4.5]));
    }

    #[test]
    fn tie_term_and_spread() {
        let ranks = Midranks::new(&[7.0, 7.0, 1.0, 7.0]).expect("no NaN");
        assert_eq!(ranks.tie_sum(), 24);
        assert_eq!(ranks.spread(), (64 - 4 - 24) / 3);
        let mean = 5; // n + 1
        let direct: u128 = ranks.twice().iter().map(|&r| u128::from(r.abs_diff(mean)).pow(2)).sum();
        assert_eq!(ranks.spread(), direct);
    }

    #[test]
    fn nan_is_undefined_and_nothing_is_nothing() {
        assert_eq!(midranks(&[1.0, f64::NAN]), None);
        assert_eq!(midranks(&[]), Some(vec![]));
    }
}
