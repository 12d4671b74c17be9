//! Eight interleaved chains and the tree that joins them: the reduction order of everything that is not a matrix product.

/// Chains in a reduction; element `i` belongs to chain `i mod 8`.
pub const LANES: usize = 8;

/// Joins eight partial results: `((0+4)+(2+6)) + ((1+5)+(3+7))`.
///
/// The order is what halving a 256-bit register twice and then once more gives, so SIMD code can follow it.
#[inline]
pub fn join(a: [f32; LANES]) -> f32 {
    ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

/// Dot product in lane order; a tail is read as if padded with zeros.
///
/// # Panics
/// If the lengths differ.
#[inline]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "dot of unequal lengths");
    let mut acc = [0.0_f32; LANES];
    let (a_full, a_tail) = a.as_chunks::<LANES>();
    let (b_full, b_tail) = b.as_chunks::<LANES>();
    for (x, y) in a_full.iter().zip(b_full) {
        for lane in 0..LANES {
            acc[lane] = x[lane].mul_add(y[lane], acc[lane]);
        }
    }
    for lane in 0..a_tail.len() {
        acc[lane] = a_tail[lane].mul_add(b_tail[lane], acc[lane]);
    }
    join(acc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn join_adds_all_lanes() {
        assert_eq!(join([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]), 255.0);
    }

    #[test]
    fn dot_handles_tails() {
        for n in 0..20_usize {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(dot(&a, &a), (0..n).map(|i| (i * i) as f32).sum::<f32>());
        }
    }
}
