//! p-values in text, which are never written as 0.

/// An exact p-value, with four decimals: `< 0.0001` below that.
pub fn exact_p(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The p-value of a test that drew `replicates` times, which cannot be below `1 / (replicates + 1)`: written as a bound there.
pub fn resampled_p(p: f64, replicates: usize) -> String {
    let floor = 1.0 / (replicates as f64 + 1.0);
    let digits = if floor < 0.001 { 5 } else { 3 };
    if p <= floor * (1.0 + 1e-9) { format!("<= {floor:.digits$}") } else { format!("{p:.digits$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_p_value_is_zero() {
        assert_eq!([0.0, 0.00005, 0.0001, 0.25].map(exact_p), ["< 0.0001", "< 0.0001", "0.0001", "0.2500"]);
        let of = |p| resampled_p(p, 199);
        assert_eq!([0.005, 0.01, 1.0].map(of), ["<= 0.005", "0.010", "1.000"]);
        assert_eq!(resampled_p(1.0 / 10_001.0, 10_000), "<= 0.00010");
    }
}
