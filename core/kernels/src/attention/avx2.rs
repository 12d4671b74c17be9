//! The two inner steps with 256-bit registers, for head sizes that are multiples of eight.
#![expect(unsafe_code, reason = "SIMD intrinsics; every slice length is checked before its pointer is used")]

use std::arch::x86_64::{
    __m256, _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps,
    _mm256_permute2f128_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_unpackhi_ps,
    _mm256_unpacklo_ps,
};

use super::KEY_TILE;
use crate::lanes::LANES;

pub(super) fn score_tile(q: &[f32], keys: &[&[f32]; KEY_TILE], scale: f32, scores: &mut [f32]) {
    assert!(scores.len() == KEY_TILE && keys.iter().all(|k| k.len() == q.len()), "score_tile: lengths");
    // SAFETY: AVX2 was detected by the caller; lengths were checked above.
    unsafe { score_tile_avx2(q, keys, scale, scores) }
}

/// Eight lane-wise dot products, then a transposition so that the tree of [`crate::lanes::join`] runs on all eight at once.
#[target_feature(enable = "avx2,fma")]
unsafe fn score_tile_avx2(q: &[f32], keys: &[&[f32]; KEY_TILE], scale: f32, scores: &mut [f32]) {
    // SAFETY: all slices have the length of `q`, a multiple of eight; `scores` has eight elements.
    unsafe {
        let mut acc = [_mm256_setzero_ps(); KEY_TILE];
        for at in (0..q.len()).step_by(LANES) {
            let x = _mm256_loadu_ps(q.as_ptr().add(at));
            for i in 0..KEY_TILE {
                acc[i] = _mm256_fmadd_ps(x, _mm256_loadu_ps(keys[i].as_ptr().add(at)), acc[i]);
            }
        }
        let lane = transpose(acc);
        let even = _mm256_add_ps(_mm256_add_ps(lane[0], lane[4]), _mm256_add_ps(lane[2], lane[6]));
        let odd = _mm256_add_ps(_mm256_add_ps(lane[1], lane[5]), _mm256_add_ps(lane[3], lane[7]));
        let sums = _mm256_mul_ps(_mm256_add_ps(even, odd), _mm256_set1_ps(scale));
        _mm256_storeu_ps(scores.as_mut_ptr(), sums);
    }
}

/// `result[lane][i] = rows[i][lane]`.
#[target_feature(enable = "avx2,fma")]
fn transpose(r: [__m256; 8]) -> [__m256; 8] {
    let pair = |a: __m256, b: __m256| (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    let (a0, a1) = pair(r[0], r[1]);
    let (a2, a3) = pair(r[2], r[3]);
    let (a4, a5) = pair(r[4], r[5]);
    let (a6, a7) = pair(r[6], r[7]);
    let low = |a: __m256, b: __m256| _mm256_shuffle_ps::<0x44>(a, b);
    let high = |a: __m256, b: __m256| _mm256_shuffle_ps::<0xEE>(a, b);
    let b =
        [low(a0, a2), high(a0, a2), low(a1, a3), high(a1, a3), low(a4, a6), high(a4, a6), low(a5, a7), high(a5, a7)];
    let mut out = [_mm256_setzero_ps(); 8];
    for i in 0..4 {
        out[i] = _mm256_permute2f128_ps::<0x20>(b[i], b[i + 4]);
        out[i + 4] = _mm256_permute2f128_ps::<0x31>(b[i], b[i + 4]);
    }
    out
}

pub(super) fn add_weighted(p: &[f32], values: &[&[f32]], sum: &mut [f32]) {
    assert!(p.len() == values.len() && values.iter().all(|v| v.len() == sum.len()), "add_weighted: lengths");
    let mut at = 0;
    while at < sum.len() {
        let left = (sum.len() - at) / LANES;
        // SAFETY: AVX2 was detected by the caller; `at` plus the registers' width stays inside `sum` and every value.
        unsafe {
            at += LANES
                * match left {
                    8.. => add_weighted_avx2::<8>(p, values, sum, at),
                    4.. => add_weighted_avx2::<4>(p, values, sum, at),
                    2.. => add_weighted_avx2::<2>(p, values, sum, at),
                    _ => add_weighted_avx2::<1>(p, values, sum, at),
                };
        }
    }
}

/// Keeps `REGISTERS` times eight channels in registers over all keys; returns `REGISTERS`.
#[target_feature(enable = "avx2,fma")]
unsafe fn add_weighted_avx2<const REGISTERS: usize>(p: &[f32], values: &[&[f32]], sum: &mut [f32], at: usize) -> usize {
    // SAFETY: the caller keeps `at + 8 * REGISTERS` inside `sum` and every value.
    unsafe {
        let mut acc = [_mm256_setzero_ps(); REGISTERS];
        for (i, a) in acc.iter_mut().enumerate() {
            *a = _mm256_loadu_ps(sum.as_ptr().add(at + i * LANES));
        }
        for (p, v) in p.iter().zip(values) {
            let p = _mm256_broadcast_ss(p);
            let v = v.as_ptr().add(at);
            for (i, a) in acc.iter_mut().enumerate() {
                *a = _mm256_fmadd_ps(p, _mm256_loadu_ps(v.add(i * LANES)), *a);
            }
        }
        for (i, a) in acc.iter().enumerate() {
            _mm256_storeu_ps(sum.as_mut_ptr().add(at + i * LANES), *a);
        }
    }
    REGISTERS
}
