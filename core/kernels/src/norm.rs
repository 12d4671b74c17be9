//! Root-mean-square norm of rows.

use crate::isa::multiversion;
use crate::lanes::dot;

/// `out[r, i] = x[r, i] / sqrt(mean_i(x[r, i]^2) + eps) * weight[i]` for every row `r`.
///
/// # Shapes
/// `x`, `out`: `[rows, weight.len()]`.
///
/// # Panics
/// If the lengths do not agree.
///
/// # References
/// Zhang and Sennrich 2019, equation 4.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "rms_norm: input and output differ in length");
    assert!(!weight.is_empty() && x.len().is_multiple_of(weight.len()), "rms_norm: rows are not whole");
    rows(x, weight, eps, out);
}

multiversion! {
    fn rows(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        let d = weight.len();
        for (x, out) in x.chunks_exact(d).zip(out.chunks_exact_mut(d)) {
            let mean_square = dot(x, x) / d as f32;
            let factor = 1.0 / (mean_square + eps).sqrt();
            for ((y, &v), &w) in out.iter_mut().zip(x).zip(weight) {
                *y = v * factor * w;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_formula_in_f64() {
        let x: Vec<f32> = (0..26).map(|i| (i as f32 - 11.0) * 0.37).collect();
        let w: Vec<f32> = (0..13).map(|i| 1.0 + 0.1 * i as f32).collect();
        let mut out = vec![0.0; 26];
        rms_norm(&x, &w, 1e-5, &mut out);
        for r in 0..2 {
            let row = &x[r * 13..][..13];
            let ms = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 13.0;
            for i in 0..13 {
                let want = f64::from(row[i]) / (ms + 1e-5).sqrt() * f64::from(w[i]);
                assert!((f64::from(out[r * 13 + i]) - want).abs() < 1e-6);
            }
        }
    }
}
