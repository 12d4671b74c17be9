//! Mean, deviation and standard error of a short column.
//!
//! Sums are taken about the first value, so that a constant column has deviation exactly 0 and a large common offset
//! costs no digits.

/// Mean of `x` (`[n]`). Undefined (`None`) without values or with a non-finite one.
pub fn mean(x: &[f64]) -> Option<f64> {
    let &pivot = x.first()?;
    let value = pivot + x.iter().map(|v| v - pivot).sum::<f64>() / x.len() as f64;
    value.is_finite().then_some(value)
}

/// Mean of `x` (`[n]`) with `x[i]` taken `counts[i]` times, as a bootstrap draws it. Undefined (`None`) where nothing is taken.
pub fn mean_of_counts(x: &[f64], counts: &[u32]) -> Option<f64> {
    let (sum, n) = x.iter().zip(counts).fold((0.0, 0), |(sum, n), (x, &c)| (sum + x * f64::from(c), n + c));
    (n > 0).then(|| sum / f64::from(n))
}

/// `sum((x - mean)^2)`, two passes. Undefined as [`mean`].
pub fn sum_of_squares(x: &[f64]) -> Option<f64> {
    let &pivot = x.first()?;
    let shift = mean(x)? - pivot;
    let value: f64 = x.iter().map(|v| (v - pivot - shift).powi(2)).sum();
    value.is_finite().then_some(value)
}

/// Sample standard deviation, `sqrt(sum((x - mean)^2) / (n - 1))`. Undefined (`None`) below two values.
pub fn sample_sd(x: &[f64]) -> Option<f64> {
    if x.len() < 2 {
        return None;
    }
    Some((sum_of_squares(x)? / (x.len() - 1) as f64).sqrt())
}

/// Standard error of the mean, `sample_sd / sqrt(n)`. Undefined (`None`) below two values.
pub fn standard_error(x: &[f64]) -> Option<f64> {
    Some(sample_sd(x)? / (x.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(sum_of_squares(&[1.0, 2.0, 6.0]), Some(14.0));
        assert_eq!(sample_sd(&[1.0, 2.0, 6.0]), Some(7.0_f64.sqrt()));
        assert_eq!(sample_sd(&[0.1, 0.1, 0.1]), Some(0.0));
        assert_eq!(mean_of_counts(&[1.0, 2.0, 6.0], &[2, 0, 1]), Some(8.0 / 3.0));
    }

    #[test]
    fn undefined() {
        assert_eq!(mean(&[]), None);
        assert_eq!(sample_sd(&[1.0]), None);
        assert_eq!(mean(&[1.0, f64::NAN]), None);
        assert_eq!(mean_of_counts(&[1.0], &[0]), None);
    }
}
