//! Matrix product with packed weights: `out[t, n] = sum_k x[t, k] w[n, k] (+ bias[n])`.
//!
//! Each output is one chain `acc = fma(x[t, k], w[n, k], acc)` over `k = 0 .. K-1`, started at zero, plus one addition
//! where there is a bias. Weights are packed once, sixteen outputs side by side, so that a single row streams them
//! once from memory and many rows reuse them from the cache.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod packed;

use rayon::prelude::*;

use crate::disjoint::Disjoint;

pub use packed::{PackedWeights, Q8_BLOCK, Q8Error};

/// Outputs side by side in a panel.
pub const PANEL: usize = 16;

/// Below this many multiply-adds a product runs on the calling thread: waking another one costs more.
const SERIAL_BELOW: usize = 1 << 17;

/// Rows a work item takes at most; a bound on the block of `x` that competes with a panel for the cache.
const ROW_BLOCK: usize = 96;

/// Multiplies rows of `x` with packed weights.
///
/// # Shapes
/// `x`: `[rows, K]`, `bias`: `[N]`, `out`: `[rows, N]`, all row-major.
///
/// # Panics
/// If the lengths do not agree.
pub fn matmul(x: &[f32], weights: &PackedWeights, bias: Option<&[f32]>, out: &mut [f32]) {
    let (k, n) = (weights.n_inputs(), weights.n_outputs());
    let rows = x.len() / k;
    assert_eq!(x.len(), rows * k, "matmul: x is not whole rows of {k}");
    assert_eq!(out.len(), rows * n, "matmul: out is not {rows} rows of {n}");
    assert!(bias.is_none_or(|b| b.len() == n), "matmul: bias is not {n} long");
    let panels = n.div_ceil(PANEL);
    let job = Job { x, weights, bias, rows, out: Disjoint::new(out) };
    if rows * k * n < SERIAL_BELOW || rayon::current_num_threads() == 1 {
        for first in (0..rows).step_by(ROW_BLOCK) {
            job.run(0..panels, first..rows.min(first + ROW_BLOCK));
        }
        return;
    }
    // Items are (panel range, row range) rectangles: disjoint in `out`, a few for each thread.
    let wanted = 4 * rayon::current_num_threads();
    let row_items = rows.div_ceil(ROW_BLOCK);
    let panels_an_item = (panels * row_items).div_ceil(wanted).clamp(1, panels);
    let panel_items = panels.div_ceil(panels_an_item);
    (0..panel_items * row_items).into_par_iter().for_each(|item| {
        let (p, r) = (item / row_items * panels_an_item, item % row_items * ROW_BLOCK);
        job.run(p..panels.min(p + panels_an_item), r..rows.min(r + ROW_BLOCK));
    });
}

struct Job<'a> {
    x: &'a [f32],
    weights: &'a PackedWeights,
    bias: Option<&'a [f32]>,
    rows: usize,
    out: Disjoint,
}

impl Job<'_> {
    /// Computes the outputs of some panels for some rows.
    fn run(&self, panels: std::ops::Range<usize>, rows: std::ops::Range<usize>) {
        debug_assert!(rows.end <= self.rows);
        #[cfg(target_arch = "x86_64")]
        if crate::instruction_set() == crate::Isa::Avx2 {
            avx2::run(self, panels, rows);
            return;
        }
        self.run_portable(panels, rows);
    }

    /// The definition, one output at a time.
    fn run_portable(&self, panels: std::ops::Range<usize>, rows: std::ops::Range<usize>) {
        let (k, n) = (self.weights.n_inputs(), self.weights.n_outputs());
        for column in panels.start * PANEL..n.min(panels.end * PANEL) {
            for row in rows.clone() {
                let x = &self.x[row * k..][..k];
                let mut acc = 0.0_f32;
                for (i, &v) in x.iter().enumerate() {
                    acc = v.mul_add(self.weights.get(column, i), acc);
                }
                let value = self.bias.map_or(acc, |b| acc + b[column]);
                // SAFETY: row < rows and column < n, and no other work item writes this element.
                #[expect(unsafe_code, reason = "disjoint writes of several threads into one matrix")]
                unsafe {
                    self.out.at(row * n + column).write(value);
                }
            }
        }
    }
}

/// The product by plain code on one thread: the definition that the fast paths are tested against.
///
/// # Shapes
/// As [`matmul`].
///
/// # Panics
/// As [`matmul`].
pub fn matmul_reference(x: &[f32], weights: &PackedWeights, bias: Option<&[f32]>, out: &mut [f32]) {
    let rows = x.len() / weights.n_inputs();
    assert_eq!(out.len(), rows * weights.n_outputs(), "matmul_reference: out has the wrong length");
    let job = Job { x, weights, bias, rows, out: Disjoint::new(out) };
    job.run_portable(0..weights.n_outputs().div_ceil(PANEL), 0..rows);
}
