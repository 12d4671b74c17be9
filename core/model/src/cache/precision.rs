//! In which numbers keys and values are kept.
//!
//! Storage is f32 whatever is chosen here, and is counted as such: a precision says what a number is rounded to when it is
//! stored, so that the effect of a cache of fewer bits can be told from that of eviction. No memory is saved by it.

use std::fmt;

/// What happens to a key or value when it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Nothing.
    #[default]
    F32,
    /// It is rounded to the nearest number with 8 bits of mantissa (`bfloat16`), ties to even.
    Bf16,
    /// It is rounded to the nearest number with 11 bits of mantissa (`float16`), ties to even.
    F16,
    /// It is moved by up to `ulps` units in its last place, both ways alike: what another order of sums would do.
    Jitter {
        /// Largest move in units in the last place; at least 1.
        ulps: u32,
        /// Which random numbers.
        seed: u64,
    },
}

impl Precision {
    /// Copies values of one head of a layer as they are stored.
    ///
    /// A jitter depends on seed, layer, head, channel and the value itself: not on batch, order or slot.
    pub(super) fn store(self, values: &[f32], layer: usize, head: usize, stored: &mut [f32]) {
        match self {
            Self::F32 => stored.copy_from_slice(values),
            Self::Bf16 => each(values, stored, |_, x| half::bf16::from_f32(x).to_f32()),
            Self::F16 => each(values, stored, |_, x| half::f16::from_f32(x).to_f32()),
            Self::Jitter { ulps, seed } => {
                let key = mixed(seed ^ mixed((layer as u64) << 32 | head as u64));
                each(values, stored, |channel, x| {
                    moved(x, ulps, mixed(key ^ (channel as u64) << 32 ^ u64::from(x.to_bits())))
                });
            }
        }
    }
}

fn each(values: &[f32], stored: &mut [f32], of: impl Fn(usize, f32) -> f32) {
    for (channel, (stored, &x)) in stored.iter_mut().zip(values).enumerate() {
        *stored = of(channel, x);
    }
}

/// Moves a number by a drawn count of units in the last place; zero and what is not finite stay.
fn moved(x: f32, ulps: u32, drawn: u64) -> f32 {
    const SIGN: u32 = 1 << 31;
    const LARGEST: i64 = f32::MAX.to_bits() as i64;
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let by = (drawn % (2 * u64::from(ulps) + 1)) as i64 - i64::from(ulps);
    let magnitude = (i64::from(x.to_bits() & !SIGN) + by).clamp(1, LARGEST) as u32;
    f32::from_bits(x.to_bits() & SIGN | magnitude)
}

/// The finaliser of `SplitMix64` (Steele, Lea & Flood 2014): every bit of the result depends on every bit of the input.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F32 => f.write_str("f32"),
            Self::Bf16 => f.write_str("bf16"),
            Self::F16 => f.write_str("f16"),
            Self::Jitter { ulps, .. } => write!(f, "jitter({ulps})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(precision: Precision, values: &[f32]) -> Vec<f32> {
        let mut out = vec![f32::NAN; values.len()];
        precision.store(values, 1, 2, &mut out);
        out
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        let values = [1.0, 1.0 + 1.0 / 512.0, -3.3, 0.0];
        assert_eq!(stored(Precision::F32, &values), values);
        assert_eq!(stored(Precision::Bf16, &values), [1.0, 1.0, -3.296_875, 0.0]);
        assert_eq!(stored(Precision::F16, &values), [1.0, 1.001_953_1, -3.300_781_3, 0.0]);
    }

    #[test]
    fn a_jitter_is_small_keyed_and_both_ways() {
        let values: Vec<f32> = (1..2000).map(|i| (i as f32).sin()).collect();
        let with = |seed| stored(Precision::Jitter { ulps: 3, seed }, &values);
        let by = |seed: u64| -> Vec<i64> {
            with(seed).iter().zip(&values).map(|(a, b)| i64::from(a.to_bits()) - i64::from(b.to_bits())).collect()
        };
        let moves = by(1);
        assert_eq!((moves.iter().min(), moves.iter().max()), (Some(&-3), Some(&3)));
        let mean = moves.iter().sum::<i64>() as f64 / moves.len() as f64;
        assert!(mean.abs() < 0.2, "{mean}: seven equal moves have a standard error of 0.045");
        assert_eq!(by(1), moves);
        assert_ne!(by(2), moves);
        let edges = [0.0, -0.0, f32::INFINITY, f32::MAX, f32::from_bits(1)];
        let got = stored(Precision::Jitter { ulps: 9, seed: 4 }, &edges);
        assert!(got[0] == 0.0 && got[1] == 0.0 && got[2].is_infinite() && got[3].is_finite() && got[4] > 0.0);
    }
}
