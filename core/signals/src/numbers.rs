//! Formulas that several scores use.

/// Added to the width of a channel: it keeps a constant one finite.
const WIDTH_EPS: f64 = 1e-9;

/// Where `x` lies between the extremes of its channel, 0 to 1.
pub(crate) fn scaled(x: f64, lo: f64, hi: f64) -> f64 {
    (x - lo) / (hi - lo + WIDTH_EPS)
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
