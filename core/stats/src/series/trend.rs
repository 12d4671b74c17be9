//! How a signal depends on the position in a trace.
//!
//! | figure | formula |
//! | --- | --- |
//! | Spearman, tau-b | of the signal and the position |
//! | Theil-Sen slope | median over pairs `i < j` of `(x_j - x_i) / (j - i)` |
//! | Theil-Sen intercept | `median(x) - slope median(position)` |
//! | lag-1 autocorrelation | `sum((x_t - m)(x_(t+1) - m)) / sum((x_t - m)^2)` |
//!
//! # References
//!
//! Theil 1950; Sen 1968, *JASA* 63:1379; Box & Jenkins 1976, chapter 2.

use crate::correlation::kendall::{kendall_tau_b, merge_sort};
use crate::correlation::spearman::spearman;
use crate::moments;
use crate::ranks::quantile::median;
use crate::ranks::rank::ordered_bits;

/// Up to this many values all slopes are listed (2 million, 16 MB); above it the median is found by counting.
const MAX_LISTED: usize = 2048;

/// The trend of one signal over positions `0..n`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Spearman's rho with the position; `None` for a constant signal.
    pub spearman: Option<f64>,
    /// Kendall's tau-b with the position; `None` for a constant signal.
    pub kendall_tau_b: Option<f64>,
    /// Theil-Sen slope, signal units a token; `None` below two values.
    pub theil_sen_slope: Option<f64>,
    /// Theil-Sen intercept at position 0; `None` below two values.
    pub theil_sen_intercept: Option<f64>,
    /// Lag-1 autocorrelation; `None` for a constant signal.
    pub lag1_autocorr: Option<f64>,
}

/// The trend of `x` (`[n]`, in position order). Cost `O(n log n)`, times about 60 for the slope of a long trace.
///
/// Undefined (`None`) with a non-finite value; single figures where [`Trend`] says so.
pub fn positional_trend(x: &[f64]) -> Option<Trend> {
    if x.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let positions: Vec<f64> = (0..x.len()).map(|i| i as f64).collect();
    let slope = theil_sen_slope(x);
    Some(Trend {
        spearman: spearman(x, &positions),
        kendall_tau_b: kendall_tau_b(x, &positions),
        theil_sen_slope: slope,
        theil_sen_intercept: slope.and_then(|s| Some(median(x)? - s * median(&positions)?)),
        lag1_autocorr: lag1_autocorrelation(x),
    })
}

/// Lag-1 autocorrelation of `x` (`[n]`), with the mean and variance of the whole column.
///
/// Undefined (`None`) for a constant column, fewer than two values, or a non-finite one.
pub fn lag1_autocorrelation(x: &[f64]) -> Option<f64> {
    let mean = moments::mean(x)?;
    let squares = moments::sum_of_squares(x).filter(|&s| s > 0.0)?;
    let products: f64 = x.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    Some(products / squares)
}

/// Theil-Sen slope of `x` (`[n]`) over positions `0..n`.
///
/// Undefined (`None`) below two values or with a non-finite one.
pub fn theil_sen_slope(x: &[f64]) -> Option<f64> {
    if x.len() < 2 || x.iter().any(|v| !v.is_finite()) {
        return None;
    }
    if x.len() <= MAX_LISTED { listed_median_slope(x) } else { Some(counted_median_slope(x)) }
}

fn listed_median_slope(x: &[f64]) -> Option<f64> {
    let mut slopes: Vec<f64> = Vec::with_capacity(x.len() * (x.len() - 1) / 2);
    for i in 0..x.len() {
        for j in i + 1..x.len() {
            slopes.push((x[j] - x[i]) / (j - i) as f64);
        }
    }
    let upper = slopes.len() / 2;
    let (below, &mut high, _) = slopes.select_nth_unstable_by(upper, f64::total_cmp);
    if x.len() * (x.len() - 1) / 2 % 2 == 1 {
        return Some(high);
    }
    let low = below.iter().copied().max_by(f64::total_cmp)?;
    Some(f64::midpoint(low, high))
}

/// The middle slopes by counting: pairs with slope at most `s` are pairs with `x_j - s j <= x_i - s i`, counted while
/// merging. The slope is bisected, as a bit pattern, until few pairs are left between the bounds; these are listed.
fn counted_median_slope(x: &[f64]) -> f64 {
    let n = x.len() as u64;
    let pairs = n * (n - 1) / 2;
    let (rank_low, rank_high) = (pairs.div_ceil(2), pairs / 2 + 1);
    // Slopes between neighbours bound all others; the margin covers the rounding of the tilted values.
    let (min, max) = x
        .windows(2)
        .map(|w| w[1] - w[0])
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), d| (lo.min(d), hi.max(d)));
    let margin = 1e-9 * min.abs().max(max.abs()) + f64::MIN_POSITIVE;
    let (mut lo, mut hi) = (ordered_bits(min - margin), ordered_bits(max + margin));
    let (mut below_lo, mut below_hi) = (0, pairs);
    while below_hi - below_lo > 4 * n {
        let mid = lo + (hi - lo) / 2;
        if mid == lo {
            return from_ordered_bits(hi); // a tie that both ranks belong to
        }
        let count = slopes_up_to(x, from_ordered_bits(mid));
        if count < rank_low {
            (lo, below_lo) = (mid, count);
        } else if count >= rank_high {
            (hi, below_hi) = (mid, count);
        } else {
            // The two ranks part exactly here, which keeps the bounds apart: nearest slopes on either side.
            return f64::midpoint(nth_slope(x, rank_low, lo, mid), nth_slope(x, rank_high, mid, hi));
        }
    }
    let mut slopes = slopes_between(x, from_ordered_bits(lo), from_ordered_bits(hi));
    slopes.sort_unstable_by(f64::total_cmp);
    let at = |rank: u64| slopes.get((rank - below_lo - 1) as usize).copied();
    match (at(rank_low), at(rank_high)) {
        (Some(low), Some(high)) => f64::midpoint(low, high),
        _ => from_ordered_bits(hi), // rounding emptied the list: the bounds are equal but for it
    }
}

/// The smallest slope in `(lo, hi]` that has `rank` slopes up to it, by plain bisection.
fn nth_slope(x: &[f64], rank: u64, mut lo: u64, mut hi: u64) -> f64 {
    while hi - lo > 1 {
        let mid = lo + (hi - lo) / 2;
        if slopes_up_to(x, from_ordered_bits(mid)) >= rank {
            hi = mid;
        } else {
            lo = mid;
        }
    }
    from_ordered_bits(hi)
}

fn slopes_up_to(x: &[f64], slope: f64) -> u64 {
    let mut count = 0;
    let mut tilted: Vec<f64> = x.iter().enumerate().map(|(i, v)| v - slope * i as f64).collect();
    merge_sort(&mut tilted, |a, b| a >= b, |left, _| count += left.len() as u64);
    count
}

/// The slopes in `(lo, hi]`: pairs in one order when tilted by `lo` and in the other when tilted by `hi`.
fn slopes_between(x: &[f64], lo: f64, hi: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    let tilt = |slope: f64, i: usize| x[i] - slope * i as f64;
    // Pairs that tie at `lo` have slope `lo` and are not wanted: later first, as if they had crossed already.
    order.sort_unstable_by(|&i, &j| tilt(lo, i).total_cmp(&tilt(lo, j)).then(j.cmp(&i)));
    let mut slopes = Vec::new();
    let crossed = |&i: &usize, &j: &usize| {
        let (a, b) = (tilt(hi, i), tilt(hi, j));
        a > b || (a >= b && i < j)
    };
    merge_sort(&mut order, crossed, |left, &j| {
        slopes.extend(left.iter().map(|&i| (x[j] - x[i]) / (j as f64 - i as f64)));
    });
    slopes
}

fn from_ordered_bits(key: u64) -> f64 {
    const SIGN: u64 = 1 << 63;
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Slopes 1, 2, 5/3, 3, 2, 1: median 11/6 = (5/3 + 2)/2; medians 2 and 1.5.
        let trend = positional_trend(&[0.0, 1.0, 4.0, 5.0]).expect("finite");
        let slope = trend.theil_sen_slope.expect("two values");
        assert!((slope - 11.0 / 6.0).abs() < 1e-15);
        assert!((trend.theil_sen_intercept.expect("two values") - (2.5 - slope * 1.5)).abs() < 1e-15);
        // m = 2.5: (-2.5)(-1.5) + (-1.5)(1.5) + 1.5*2.5 over 17
        assert!((trend.lag1_autocorr.expect("varies") - 5.25 / 17.0).abs() < 1e-15);
        assert_eq!(trend.spearman, Some(1.0));
    }

    #[test]
    fn counting_equals_listing() {
        let mut state = 9_u32;
        let noise: Vec<f64> = (0..301)
            .map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(state >> 16) / 65536.0 - 0.01 * f64::from(i)
            })
            .collect();
        let coarse: Vec<f64> = noise.iter().map(|v| (v * 4.0).round()).collect();
        let line: Vec<f64> = (0..301).map(|i| 7.0 - 0.1 * f64::from(i)).collect();
        for x in [noise, coarse, line, vec![3.0; 301]] {
            for n in [2, 3, 4, 5, 30, 300, 301] {
                let listed = listed_median_slope(&x[..n]).expect("two values");
                let counted = counted_median_slope(&x[..n]);
                assert!((listed - counted).abs() < 1e-13, "{n}: {listed} {counted}");
            }
        }
    }

    #[test]
    fn constant_and_short() {
        let trend = positional_trend(&[3.0; 4]).expect("finite");
        assert_eq!((trend.spearman, trend.lag1_autocorr), (None, None));
        assert_eq!((trend.theil_sen_slope, trend.theil_sen_intercept), (Some(0.0), Some(3.0)));
        assert_eq!(theil_sen_slope(&[1.0]), None);
        assert_eq!(positional_trend(&[f64::INFINITY]), None);
    }
}
