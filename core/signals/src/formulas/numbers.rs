//! Sums over short lists of numbers.

/// The length of a vector, `|x|`.
pub(crate) fn norm(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

/// The dot product in eight chains, in the same order on every machine.
///
/// The kernels' own fuses each product with its sum and joins the chains in another order, so its last bits differ.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut chains = [0.0; 8];
    let (a_eights, b_eights) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a_eights.remainder().iter().zip(b_eights.remainder()).map(|(x, y)| x * y).sum();
    for (a, b) in a_eights.zip(b_eights) {
        for (chain, (x, y)) in chains.iter_mut().zip(a.iter().zip(b)) {
            *chain += x * y;
        }
    }
    chains.iter().sum::<f32>() + rest
}

/// The unbiased standard deviation, in two passes.
pub(crate) fn deviation(x: &[f64]) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (x.len() as f64 - 1.0)).sqrt()
}

/// `exp(x_i) / sum_j exp(x_j)`.
pub(crate) fn softmax(x: &[f64]) -> Vec<f64> {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = x.iter().map(|x| (x - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_product_of_any_length() {
        for n in [1, 7, 8, 16, 19] {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let want: f32 = (0..n).map(|i| (i * i) as f32).sum();
            assert_eq!(dot(&a, &a).to_bits(), want.to_bits(), "whole numbers are exact");
        }
    }

    #[test]
    fn by_hand() {
        assert_eq!((norm(&[3.0, 4.0]), deviation(&[1.0, 3.0])), (5.0, 2.0_f64.sqrt()));
        assert_eq!(softmax(&[7.0, 7.0]), [0.5, 0.5]);
    }
}
