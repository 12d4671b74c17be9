//! Midranks and the tie term, kept as integers.
//!
//! Values that tie share the mean of the ranks they occupy: a group of `t` values with `b` values before it has
//! midrank `b + (t + 1)/2`. Doubled midranks are integers, so everything built on them is exact until the last
//! division. `-0.0` and `+0.0` tie; infinities are ordinary extreme values.
//!
//! # References
//!
//! Kendall & Gibbons 1990, *Rank Correlation Methods*, chapter 3 (ties).

use crate::ranks::radix::{key_of, ordered_key, sort_tagged, tagged};

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
        Some(Self::of_groups(x.len(), order.chunk_by(|a, b| a.0 == b.0), |&(_, i)| i))
    }

    /// The same of f32 values, by a radix sort. Cost `O(n)`; extra memory 16 bytes a value.
    ///
    /// Undefined (`None`) when `x` holds a `NaN`.
    ///
    /// # Panics
    ///
    /// With 2^32 values or more.
    pub fn from_f32(x: &[f32]) -> Option<Self> {
        SignalOrder::new(x).map(|order| order.ranks)
    }

    /// Midranks of a label, false before true.
    pub fn of_labels(important: &[bool]) -> Self {
        let n_pos = important.iter().filter(|&&one| one).count() as u64;
        let n_neg = important.len() as u64 - n_pos;
        let twice = |&one: &bool| if one { 2 * n_neg + n_pos + 1 } else { n_neg + 1 };
        let tie_sum = cube_minus_self(n_neg) + cube_minus_self(n_pos);
        Self { twice: important.iter().map(twice).collect(), tie_sum }
    }

    /// Midranks of `n` ascending values, such as positions.
    pub fn ascending(n: usize) -> Self {
        Self { twice: (1..=n as u64).map(|rank| 2 * rank).collect(), tie_sum: 0 }
    }

    /// From the groups of tied values, upwards; `place` says where a value stands in the column.
    fn of_groups<'g, T: 'g>(n: usize, groups: impl Iterator<Item = &'g [T]>, place: impl Fn(&T) -> usize) -> Self {
        let mut twice = vec![0; n];
        let mut tie_sum = 0;
        let mut before = 0_u64;
        for group in groups {
            let size = group.len() as u64;
            for value in group {
                twice[place(value)] = 2 * before + size + 1;
            }
            if size > 1 {
                tie_sum += cube_minus_self(size);
            }
            before += size;
        }
        Self { twice, tie_sum }
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

/// The tokens of a trace in the order of their signal: one sort, from which every rank statistic of the trace follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalOrder {
    /// Keys with the places of their tokens, upwards.
    tokens: Vec<u64>,
    ranks: Midranks,
}

impl SignalOrder {
    /// Sorts a signal (`[n]`). Cost `O(n)`; 16 bytes a token, twice that while it sorts.
    ///
    /// Undefined (`None`) when the signal holds a `NaN`.
    ///
    /// # Panics
    ///
    /// With 2^32 tokens or more.
    pub fn new(signal: &[f32]) -> Option<Self> {
        assert!(u32::try_from(signal.len()).is_ok(), "the place of a token has 32 bits");
        if signal.iter().any(|v| v.is_nan()) {
            return None;
        }
        let mut tokens: Vec<u64> = signal.iter().zip(0_u32..).map(|(&v, i)| tagged(ordered_key(v), i)).collect();
        sort_tagged(&mut tokens);
        let ranks = Midranks::of_groups(signal.len(), groups(&tokens), |&token| place(token));
        Some(Self { tokens, ranks })
    }

    /// The midranks of the signal, in the order of the trace.
    pub fn ranks(&self) -> &Midranks {
        &self.ranks
    }

    /// Twice the midrank of each token among those of its bin, in the order of the trace; `bins` (`[n]`) holds numbers below
    /// `n_bins`. Cost `O(n)`.
    ///
    /// # Panics
    ///
    /// If there is not one bin a token.
    pub fn ranks_in_bins(&self, bins: &[u32], n_bins: usize) -> Vec<u64> {
        assert_eq!(self.tokens.len(), bins.len(), "one bin a token");
        let bin = |token: u64| bins[place(token)] as usize;
        let mut twice = vec![0; bins.len()];
        let (mut before, mut tied) = (vec![0_u64; n_bins], vec![0_u64; n_bins]);
        for group in groups(&self.tokens) {
            if let [token] = *group {
                // The common case, where values do not tie.
                let before = &mut before[bin(token)];
                twice[place(token)] = 2 * *before + 2;
                *before += 1;
                continue;
            }
            for &token in group {
                tied[bin(token)] += 1;
            }
            for &token in group {
                let bin = bin(token);
                twice[place(token)] = 2 * before[bin] + tied[bin] + 1;
            }
            for &token in group {
                let bin = bin(token);
                before[bin] += std::mem::take(&mut tied[bin]);
            }
        }
        twice
    }
}

/// Where the token of a key stands in its trace.
fn place(token: u64) -> usize {
    token as u32 as usize
}

/// Tokens that tie: `chunk_by`, which is not inlined and takes longer than the work on a group of one.
#[inline]
fn groups(tokens: &[u64]) -> impl Iterator<Item = &[u64]> {
    let mut rest = tokens;
    std::iter::from_fn(move || {
        let key = key_of(*rest.first()?);
        let size = 1 + rest[1..].iter().take_while(|&&token| key_of(token) == key).count();
        let (group, more) = rest.split_at(size);
        rest = more;
        Some(group)
    })
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

/// `t^3 - t`; 0 for an empty group.
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
    fn a_radix_sort_a_label_and_positions_rank_as_the_general_way_does() {
        for n in [0, 1, 5, 4000_u32] {
            let x: Vec<f32> = (0..n).map(|i| (((i * 7919) % 613) as f32 - 300.0) * 0.5).collect();
            let wide: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
            assert_eq!(Midranks::from_f32(&x), Midranks::new(&wide));
            let label: Vec<bool> = x.iter().map(|&v| v > 20.0).collect();
            let numbers: Vec<f64> = label.iter().map(|&one| f64::from(u8::from(one))).collect();
            assert_eq!(Some(Midranks::of_labels(&label)), Midranks::new(&numbers));
            let positions: Vec<f64> = (0..n).map(f64::from).collect();
            assert_eq!(Some(Midranks::ascending(n as usize)), Midranks::new(&positions));
        }
        assert_eq!(Midranks::from_f32(&[-0.0, 0.0]), Midranks::new(&[0.0, 0.0]));
        assert_eq!(Midranks::from_f32(&[f32::NAN]), None);
    }

    #[test]
    fn nan_is_undefined_and_nothing_is_nothing() {
        assert_eq!(midranks(&[1.0, f64::NAN]), None);
        assert_eq!(midranks(&[]), Some(vec![]));
    }
}
