//! Rho within position bins: a correction for trends that are not linear in rank.
//!
//! A partial correlation removes a monotone trend; one that is high at both ends survives it. Here tokens are compared
//! only with tokens of the same stratum (such as a tenth of the trace):
//!
//! ```text
//! a_i = (R_i - (n_s + 1)/2) / n_s        R_i the midrank of the signal inside stratum s of n_s tokens
//! b_i = y_i - mean of y in s
//! rho = sum(a b) / sqrt(sum(a^2) sum(b^2))
//! ```
//!
//! With one stratum this is Spearman's rho.
//!
//! # References
//!
//! van Elteren 1960, *Bull. Int. Stat. Inst.* 37:351 (stratified rank sums), as a correlation.

use crate::ranks::rank::SignalOrder;

/// The rho of a trace within `n_bins` equal parts of its positions: token `i` of `n` is in part `floor(i n_bins / n)`. Cost
/// `O(n)`.
///
/// Undefined (`None`) when no part has both labels or none has two different signal values.
///
/// # Panics
///
/// If there is not one label a token.
pub fn binned_rho(order: &SignalOrder, important: &[bool], n_bins: usize) -> Option<f64> {
    let n = important.len();
    // Bin b starts at the first i with i n_bins >= b n.
    let bins = (0..n_bins).map(|bin| (bin * n).div_ceil(n_bins)..((bin + 1) * n).div_ceil(n_bins));
    let of_token: Vec<u32> = (0..).zip(bins.clone()).flat_map(|(at, bin)| std::iter::repeat_n(at, bin.len())).collect();
    let twice = order.ranks_in_bins(&of_token, n_bins);
    let mut sums = Sums::default();
    for bin in bins.filter(|bin| !bin.is_empty()) {
        sums.add(&twice[bin.clone()], &important[bin]);
    }
    sums.rho()
}

/// Sums over all strata.
#[derive(Default)]
struct Sums {
    ab: f64,
    aa: f64,
    bb: f64,
}

impl Sums {
    /// Adds one stratum: doubled midranks inside it, and labels.
    fn add(&mut self, twice: &[u64], important: &[bool]) {
        let n = important.len() as f64;
        let base = important.iter().filter(|&&one| one).count() as f64 / n;
        for (&twice, &one) in twice.iter().zip(important) {
            let a = (twice as f64 - (n + 1.0)) / (2.0 * n);
            let b = f64::from(u8::from(one)) - base;
            self.ab += a * b;
            self.aa += a * a;
            self.bb += b * b;
        }
    }

    fn rho(&self) -> Option<f64> {
        let Self { ab, aa, bb } = self;
        (*aa > 0.0 && *bb > 0.0).then(|| (ab / (aa * bb).sqrt()).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlation::spearman::spearman;
    use crate::ranks::rank::Midranks;

    /// The definition, for any strata: `strata` (`[n]`) names the stratum of each token.
    fn stratified_rho(signal: &[f64], important: &[bool], strata: &[usize]) -> Option<f64> {
        let mut order: Vec<usize> = (0..signal.len()).collect();
        order.sort_by_key(|&i| strata[i]);
        let mut sums = Sums::default();
        for stratum in order.chunk_by(|&i, &j| strata[i] == strata[j]) {
            let values: Vec<f64> = stratum.iter().map(|&i| signal[i]).collect();
            let important: Vec<bool> = stratum.iter().map(|&i| important[i]).collect();
            sums.add(Midranks::new(&values)?.twice(), &important);
        }
        sums.rho()
    }

    /// The bin of each of `n` positions when a trace is cut into `n_bins` equal parts: `floor(i n_bins / n)`.
    fn position_bins(n: usize, n_bins: usize) -> Vec<usize> {
        (0..n).map(|i| i * n_bins / n).collect()
    }

    #[test]
    fn one_stratum_is_spearman() {
        let signal = [0.3, 0.1, 0.7, 0.7, 0.2];
        let important = [true, false, true, false, false];
        let label = important.map(|b| f64::from(u8::from(b)));
        let got = stratified_rho(&signal, &important, &[0; 5]).expect("defined");
        assert!((got - spearman(&signal, &label).expect("defined")).abs() < 1e-15);
    }

    #[test]
    fn a_shift_between_strata_is_removed() {
        // Second half: all higher, all more often important, and no relation inside.
        let signal = [1.0, 2.0, 1.0, 2.0, 11.0, 12.0, 11.0, 12.0, 11.0, 12.0];
        let important = [false, false, false, false, true, true, true, true, false, false];
        let strata = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1];
        let got = stratified_rho(&signal, &important, &strata).expect("defined");
        assert!(got.abs() < 1e-15);
    }

    #[test]
    fn bins_are_strata() {
        for n in [1, 7, 30, 1234_usize] {
            let signal: Vec<f32> = (0..n).map(|i| ((i * 7919) % 101) as f32).collect();
            let important: Vec<bool> = (0..n).map(|i| (i * 31) % 7 < 2).collect();
            let wide: Vec<f64> = signal.iter().map(|&x| f64::from(x)).collect();
            let want = stratified_rho(&wide, &important, &position_bins(n, 10));
            let order = SignalOrder::new(&signal).expect("no NaN");
            assert_eq!(binned_rho(&order, &important, 10), want, "{n} tokens");
        }
        assert_eq!(binned_rho(&SignalOrder::new(&[]).expect("no NaN"), &[], 10), None);
    }

    #[test]
    fn bins_and_undefined() {
        assert_eq!(position_bins(5, 2), [0, 0, 0, 1, 1]);
        assert_eq!(stratified_rho(&[1.0, 2.0], &[true, false], &[0, 1]), None);
    }
}
