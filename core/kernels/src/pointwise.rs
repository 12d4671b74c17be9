//! Exponential, softmax of a row, and the gate of the MLP.

use crate::isa::multiversion;
use crate::lanes::{LANES, join};

/// `exp(x)` to about one unit in the last place, by the same operations on every machine.
///
/// `x = n ln 2 + r`, `|r| <= ln 2 / 2`; a degree-6 polynomial for `exp(r)` and an exponent add for `2^n`.
/// Below -87.33 the result is 0 (no denormals), above 88.37 it is infinite.
///
/// No branches, so that loops over it take eight values at once.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // ln 2 in two parts: n * LN2_HI is exact for |n| < 2^9.
    const LN2_HI: f32 = 0.693_359_4;
    const LN2_LO: f32 = -2.121_944_4e-4;
    // Adding this rounds a number below 2^22 to an integer (ties to even), which then stands in the lowest bits.
    const SHIFT: f32 = 12_582_912.0;
    let shifted = (x * std::f32::consts::LOG2_E).clamp(-127.0, 127.0) + SHIFT;
    let n = shifted - SHIFT;
    let r = n.mul_add(-LN2_LO, n.mul_add(-LN2_HI, x));
    let mut p = 1.388_888_9e-3_f32; // 1/6!
    for c in [8.333_334e-3, 4.166_666_8e-2, 1.666_666_7e-1, 0.5, 1.0, 1.0_f32] {
        p = p.mul_add(r, c);
    }
    // NaN is carried by `r` through `p`, whatever the exponent is then.
    let scale = f32::from_bits(shifted.to_bits().wrapping_sub(SHIFT.to_bits()).wrapping_add(127) << 23);
    let y = if x < -87.33 { 0.0 } else { p * scale };
    if x > 88.37 { f32::INFINITY } else { y }
}

multiversion! {
    /// Softmax of one row in place: `s[j] <- exp(s[j] - max) / sum`. The sum runs in lane order.
    pub fn softmax(s: &mut [f32]) {
        let mut top = [f32::NEG_INFINITY; LANES];
        let (full, tail) = s.as_chunks::<LANES>();
        for c in full {
            for lane in 0..LANES {
                top[lane] = if c[lane] > top[lane] { c[lane] } else { top[lane] };
            }
        }
        let max = top.iter().chain(tail).fold(f32::NEG_INFINITY, |m, &v| if v > m { v } else { m });
        // Two passes: the compiler takes eight exponentials at once only in a loop of their own.
        for v in s.iter_mut() {
            *v = exp(*v - max);
        }
        let mut acc = [0.0_f32; LANES];
        let (full, tail) = s.as_chunks::<LANES>();
        for c in full {
            for lane in 0..LANES {
                acc[lane] += c[lane];
            }
        }
        for (sum, v) in acc.iter_mut().zip(tail) {
            *sum += v;
        }
        let factor = 1.0 / join(acc);
        for v in s.iter_mut() {
            *v *= factor;
        }
    }
}

/// `ln sum_j exp(s[j])`; eight lanes are summed in f64, then joined in order. Minus infinity for an empty row.
pub fn log_sum_exp(s: &[f32]) -> f64 {
    let max = s.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if max == f32::NEG_INFINITY {
        return f64::from(max);
    }
    let mut sums = [0.0_f64; LANES];
    sum_exp_below(s, max, &mut sums);
    f64::from(max) + sums.iter().sum::<f64>().ln()
}

multiversion! {
    /// Adds `exp(s[j] - max)` to the sum of lane `j mod 8`.
    fn sum_exp_below(s: &[f32], max: f32, sums: &mut [f64; LANES]) {
        let (full, tail) = s.as_chunks::<LANES>();
        for c in full {
            let mut powers = [0.0_f32; LANES];
            for lane in 0..LANES {
                powers[lane] = exp(c[lane] - max);
            }
            for lane in 0..LANES {
                sums[lane] += f64::from(powers[lane]);
            }
        }
        for (sum, &v) in sums.iter_mut().zip(tail) {
            *sum += f64::from(exp(v - max));
        }
    }
}

/// `out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]` (SwiGLU, Shazeer 2020).
///
/// # Panics
/// If the lengths differ.
pub fn silu_mul(gate: &[f32], up: &[f32], out: &mut [f32]) {
    assert!(gate.len() == up.len() && up.len() == out.len(), "silu_mul of unequal lengths");
    silu_mul_body(gate, up, out);
}

multiversion! {
    fn silu_mul_body(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((y, &g), &u) in out.iter_mut().zip(gate).zip(up) {
            *y = g / (1.0 + exp(-g)) * u;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_everywhere_and_exact_at_zero() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        let mut worst = 0.0_f64;
        for i in -87_000..88_000 {
            let x = i as f32 / 1000.0;
            let want = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / want - 1.0).abs());
        }
        assert!(worst < 2.5e-7, "relative error {worst:e}");
    }

    #[test]
    fn softmax_sums_to_one_and_keeps_order() {
        for n in 1..40 {
            let mut s: Vec<f32> = (0..n).map(|i| ((i * 37) % 11) as f32 - 5.0).collect();
            let before = s.clone();
            softmax(&mut s);
            assert!((s.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            for i in 0..n {
                for j in 0..n {
                    assert_eq!(before[i] < before[j], s[i] < s[j]);
                }
            }
        }
    }

    #[test]
    fn softmax_of_masked_scores_ignores_them() {
        let mut s = [0.0, f32::NEG_INFINITY, 0.0];
        softmax(&mut s);
        assert_eq!(s, [0.5, 0.0, 0.5]);
    }

    #[test]
    fn the_wide_and_the_plain_code_agree_bit_by_bit() {
        let x: Vec<f32> = (0..1003).map(|i| ((i * 7919) % 2003) as f32 / 97.0 - 10.0).collect();
        let up: Vec<f32> = x.iter().rev().copied().collect();
        let mut out = vec![0.0; x.len()];
        silu_mul(&x, &up, &mut out);
        for i in 0..x.len() {
            let want = x[i] / (1.0 + exp(-x[i])) * up[i];
            assert_eq!(out[i].to_bits(), want.to_bits());
        }
    }
}
