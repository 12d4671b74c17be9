//! The product with 256-bit registers: tiles of up to six rows and sixteen outputs, or one row and sixty-four outputs.
#![expect(
    unsafe_code,
    reason = "SIMD intrinsics on raw pointers in the innermost loop; bounds are checked by the caller"
)]
#![expect(clippy::needless_range_loop, reason = "index loops over registers unroll; the index names row or panel")]
#![expect(clippy::cast_ptr_alignment, reason = "the load is an unaligned one")]

use std::arch::x86_64::{
    __m128i, __m256, _mm_loadu_si128, _mm_srli_si128, _mm256_add_ps, _mm256_broadcast_ss, _mm256_cvtepi8_epi32,
    _mm256_cvtepi32_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_setzero_ps, _mm256_storeu_ps,
};
use std::ops::Range;

use super::packed::Store;
use super::{Job, PANEL, Q8_BLOCK};

/// Rows of a tile: 6 x 2 accumulators, two registers of weights and a broadcast fill the sixteen registers.
const TILE_ROWS: usize = 6;

/// Panels that a single row takes at once: eight independent chains hide the latency of the multiply-add.
const SINGLE_ROW_PANELS: usize = 4;

/// Sixteen neighbouring outputs of one input.
trait Panel: Copy {
    /// The weights of input `k`. Unsafe: `k` must be below the number of inputs, and AVX2 available.
    unsafe fn load(self, k: usize) -> (__m256, __m256);
}

#[derive(Clone, Copy)]
struct F32Panel(*const f32);

impl Panel for F32Panel {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must take the target features of the tile")]
    unsafe fn load(self, k: usize) -> (__m256, __m256) {
        // SAFETY: the caller keeps `k` in range.
        unsafe {
            let at = self.0.add(k * PANEL);
            (_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8)))
        }
    }
}

#[derive(Clone, Copy)]
struct Q8Panel {
    values: *const i8,
    scales: *const f32,
}

impl Panel for Q8Panel {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "must take the target features of the tile")]
    unsafe fn load(self, k: usize) -> (__m256, __m256) {
        // SAFETY: the caller keeps `k` in range; a block of scales covers 32 inputs.
        unsafe {
            let q = _mm_loadu_si128(self.values.add(k * PANEL).cast::<__m128i>());
            let scale = self.scales.add(k / Q8_BLOCK * PANEL);
            let low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
            let high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128::<8>(q)));
            (_mm256_mul_ps(low, _mm256_loadu_ps(scale)), _mm256_mul_ps(high, _mm256_loadu_ps(scale.add(8))))
        }
    }
}

/// Computes a rectangle of the output.
pub(super) fn run(job: &Job<'_>, panels: Range<usize>, rows: Range<usize>) {
    let k = job.weights.n_inputs();
    match &job.weights.store {
        // SAFETY: AVX2 and FMA were detected; a panel holds K x 16 values, so pointers stay inside the vectors.
        Store::F32(values) => unsafe {
            rectangle(job, panels, rows, |p| F32Panel(values.as_ptr().add(p * k * PANEL)));
        },
        // SAFETY: as above; a panel has K/32 x 16 scales.
        Store::Q8 { values, scales } => unsafe {
            rectangle(job, panels, rows, |p| Q8Panel {
                values: values.as_ptr().add(p * k * PANEL),
                scales: scales.as_ptr().add(p * (k / Q8_BLOCK) * PANEL),
            });
        },
    }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn rectangle<P: Panel>(job: &Job<'_>, panels: Range<usize>, rows: Range<usize>, panel: impl Fn(usize) -> P) {
    // SAFETY: panels and rows are inside the matrices, as `matmul` checked.
    unsafe {
        if rows.len() == 1 {
            let mut p = panels.start;
            while p + SINGLE_ROW_PANELS <= panels.end {
                let group = [panel(p), panel(p + 1), panel(p + 2), panel(p + 3)];
                tile::<1, SINGLE_ROW_PANELS, P>(job, group, p, rows.start);
                p += SINGLE_ROW_PANELS;
            }
            for p in p..panels.end {
                tile::<1, 1, P>(job, [panel(p)], p, rows.start);
            }
            return;
        }
        for p in panels {
            let weights = [panel(p)];
            let mut row = rows.start;
            while row < rows.end {
                let left = rows.end - row;
                // Eight rows are four and four: a tile of two would wait for its few sums.
                let taken = left.div_ceil(left.div_ceil(TILE_ROWS));
                match taken {
                    1 => tile::<1, 1, P>(job, weights, p, row),
                    2 => tile::<2, 1, P>(job, weights, p, row),
                    3 => tile::<3, 1, P>(job, weights, p, row),
                    4 => tile::<4, 1, P>(job, weights, p, row),
                    5 => tile::<5, 1, P>(job, weights, p, row),
                    _ => tile::<TILE_ROWS, 1, P>(job, weights, p, row),
                }
                row += taken;
            }
        }
    }
}

/// `ROWS` rows times `PANELS` panels, all of K in registers.
#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const ROWS: usize, const PANELS: usize, P: Panel>(
    job: &Job<'_>,
    panels: [P; PANELS],
    first_panel: usize,
    first_row: usize,
) {
    let (k, n) = (job.weights.n_inputs(), job.weights.n_outputs());
    // SAFETY: `first_row + ROWS` rows exist in x and out; columns past N are only written to the local buffer.
    unsafe {
        let x = job.x.as_ptr().add(first_row * k);
        let mut acc = [[[_mm256_setzero_ps(); 2]; PANELS]; ROWS];
        for i in 0..k {
            let mut w = [[_mm256_setzero_ps(); 2]; PANELS];
            for p in 0..PANELS {
                let (low, high) = panels[p].load(i);
                w[p] = [low, high];
            }
            for r in 0..ROWS {
                let v = _mm256_broadcast_ss(&*x.add(r * k + i));
                for p in 0..PANELS {
                    acc[r][p][0] = _mm256_fmadd_ps(v, w[p][0], acc[r][p][0]);
                    acc[r][p][1] = _mm256_fmadd_ps(v, w[p][1], acc[r][p][1]);
                }
            }
        }
        for p in 0..PANELS {
            let column = (first_panel + p) * PANEL;
            let width = PANEL.min(n - column);
            let mut bias = [0.0_f32; PANEL];
            if let Some(b) = job.bias {
                bias[..width].copy_from_slice(&b[column..column + width]);
            }
            for r in 0..ROWS {
                let mut sums = acc[r][p];
                if job.bias.is_some() {
                    sums[0] = _mm256_add_ps(sums[0], _mm256_loadu_ps(bias.as_ptr()));
                    sums[1] = _mm256_add_ps(sums[1], _mm256_loadu_ps(bias.as_ptr().add(8)));
                }
                let out = job.out.at((first_row + r) * n + column);
                if width == PANEL {
                    _mm256_storeu_ps(out, sums[0]);
                    _mm256_storeu_ps(out.add(8), sums[1]);
                } else {
                    let mut buffer = [0.0_f32; PANEL];
                    _mm256_storeu_ps(buffer.as_mut_ptr(), sums[0]);
                    _mm256_storeu_ps(buffer.as_mut_ptr().add(8), sums[1]);
                    std::ptr::copy_nonoverlapping(buffer.as_ptr(), out, width);
                }
            }
        }
    }
}
