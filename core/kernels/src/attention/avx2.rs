//! The inner steps with 256-bit registers, for head sizes that are multiples of eight.
#![expect(unsafe_code, reason = "SIMD intrinsics; every slice length is checked before its pointer is used")]

use std::arch::x86_64::{
    __m256, _MM_HINT_T0, _mm_prefetch, _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps, _mm256_loadu_ps,
    _mm256_mul_ps, _mm256_permute2f128_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_shuffle_ps, _mm256_storeu_ps,
    _mm256_unpackhi_ps, _mm256_unpacklo_ps,
};

use super::{KEY_TILE, Weights};
use crate::lanes::LANES;

/// Asks for the first and the last cache line of a vector.
#[inline]
pub(super) fn prefetch(vector: &[f32]) {
    for element in [vector.first(), vector.last()].into_iter().flatten() {
        // SAFETY: a hint about an address that can be read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
    }
}

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
        _mm256_storeu_ps(scores.as_mut_ptr(), join(transpose(acc), scale));
    }
}

/// The tree of [`crate::lanes::join`] on eight dot products at once, and the scale.
#[target_feature(enable = "avx2,fma")]
fn join(lane: [__m256; LANES], scale: f32) -> __m256 {
    let even = _mm256_add_ps(_mm256_add_ps(lane[0], lane[4]), _mm256_add_ps(lane[2], lane[6]));
    let odd = _mm256_add_ps(_mm256_add_ps(lane[1], lane[5]), _mm256_add_ps(lane[3], lane[7]));
    _mm256_mul_ps(_mm256_add_ps(even, odd), _mm256_set1_ps(scale))
}

pub(super) fn transpose_keys(keys: &[&[f32]; KEY_TILE], columns: &mut [[f32; KEY_TILE]]) {
    let d = columns.len();
    assert!(d.is_multiple_of(LANES) && keys.iter().all(|k| k.len() == d), "transpose_keys: lengths");
    // SAFETY: AVX2 was detected by the caller; lengths were checked above.
    unsafe { transpose_keys_avx2(keys, columns) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn transpose_keys_avx2(keys: &[&[f32]; KEY_TILE], columns: &mut [[f32; KEY_TILE]]) {
    for (at, block) in columns.chunks_exact_mut(LANES).enumerate() {
        // SAFETY: all keys have the length of `columns`, a multiple of eight.
        let rows = keys.map(|key| unsafe { _mm256_loadu_ps(key.as_ptr().add(at * LANES)) });
        for (column, values) in block.iter_mut().zip(transpose(rows)) {
            // SAFETY: a column has eight elements.
            unsafe { _mm256_storeu_ps(column.as_mut_ptr(), values) };
        }
    }
}

pub(super) fn score_columns(q: &[f32], columns: &[[f32; KEY_TILE]], scale: f32, scores: &mut [f32]) {
    assert!(scores.len() == KEY_TILE && columns.len() == q.len(), "score_columns: lengths");
    // SAFETY: AVX2 was detected by the caller; lengths were checked above.
    unsafe { score_columns_avx2(q, columns, scale, scores) }
}

/// Chain `c mod 8` of all eight dot products in one register: no transposition is left to do.
#[target_feature(enable = "avx2,fma")]
unsafe fn score_columns_avx2(q: &[f32], columns: &[[f32; KEY_TILE]], scale: f32, scores: &mut [f32]) {
    let mut lane = [_mm256_setzero_ps(); LANES];
    for (q, columns) in q.chunks_exact(LANES).zip(columns.chunks_exact(LANES)) {
        for i in 0..LANES {
            // SAFETY: a column has eight elements.
            let keys = unsafe { _mm256_loadu_ps(columns[i].as_ptr()) };
            lane[i] = _mm256_fmadd_ps(_mm256_broadcast_ss(&q[i]), keys, lane[i]);
        }
    }
    // SAFETY: `scores` has eight elements.
    unsafe { _mm256_storeu_ps(scores.as_mut_ptr(), join(lane, scale)) };
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

pub(super) fn add_weighted(weights: Weights<'_>, values: &[&[f32]], sums: &mut [f32]) {
    let Weights { p, stride, n_queries } = weights;
    let d = sums.len() / n_queries;
    assert!(d * n_queries == sums.len() && values.iter().all(|v| v.len() == d), "add_weighted: lengths");
    assert!((n_queries - 1) * stride + values.len() <= p.len(), "add_weighted: weights");
    let mut query = 0;
    while query < n_queries {
        // Short vectors of several queries together: enough chains to hide the latency of one.
        let taken = if d == 2 * LANES { (n_queries - query).min(4) } else { 1 };
        let (p, sums) = (&p[query * stride..], &mut sums[query * d..(query + taken) * d]);
        // SAFETY: AVX2 was detected by the caller; all lengths were checked above.
        unsafe {
            match taken {
                4 => _ = add_weighted_avx2::<2, 4>(p, stride, values, sums, 0),
                3 => _ = add_weighted_avx2::<2, 3>(p, stride, values, sums, 0),
                2 => _ = add_weighted_avx2::<2, 2>(p, stride, values, sums, 0),
                _ => add_weighted_of_one(p, stride, values, sums),
            }
        }
        query += taken;
    }
}

/// Any number of channels of one query.
#[target_feature(enable = "avx2,fma")]
unsafe fn add_weighted_of_one(p: &[f32], stride: usize, values: &[&[f32]], sum: &mut [f32]) {
    let mut at = 0;
    while at < sum.len() {
        let left = (sum.len() - at) / LANES;
        // SAFETY: `at` plus the registers' width stays inside `sum` and every value; the caller checked `p`.
        unsafe {
            at += LANES
                * match left {
                    8.. => add_weighted_avx2::<8, 1>(p, stride, values, sum, at),
                    4.. => add_weighted_avx2::<4, 1>(p, stride, values, sum, at),
                    2.. => add_weighted_avx2::<2, 1>(p, stride, values, sum, at),
                    _ => add_weighted_avx2::<1, 1>(p, stride, values, sum, at),
                };
        }
    }
}

/// Keeps `REGISTERS` times eight channels, from `at` on, of `QUERIES` queries in registers over all values;
/// returns `REGISTERS`.
#[target_feature(enable = "avx2,fma")]
unsafe fn add_weighted_avx2<const REGISTERS: usize, const QUERIES: usize>(
    p: &[f32],
    stride: usize,
    values: &[&[f32]],
    sums: &mut [f32],
    at: usize,
) -> usize {
    let d = sums.len() / QUERIES;
    // SAFETY: the caller keeps `at + 8 * REGISTERS` inside every sum and value, and a weight of each value for each query
    // inside `p`.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); REGISTERS]; QUERIES];
        for (query, acc) in acc.iter_mut().enumerate() {
            for (i, a) in acc.iter_mut().enumerate() {
                *a = _mm256_loadu_ps(sums.as_ptr().add(query * d + at + i * LANES));
            }
        }
        for (j, v) in values.iter().enumerate() {
            let v = v.as_ptr().add(at);
            let v: [__m256; REGISTERS] = std::array::from_fn(|i| _mm256_loadu_ps(v.add(i * LANES)));
            for (query, acc) in acc.iter_mut().enumerate() {
                let p = _mm256_broadcast_ss(p.get_unchecked(query * stride + j));
                for (a, v) in acc.iter_mut().zip(v) {
                    *a = _mm256_fmadd_ps(p, v, *a);
                }
            }
        }
        for (query, acc) in acc.iter().enumerate() {
            for (i, a) in acc.iter().enumerate() {
                _mm256_storeu_ps(sums.as_mut_ptr().add(query * d + at + i * LANES), *a);
            }
        }
    }
    REGISTERS
}
