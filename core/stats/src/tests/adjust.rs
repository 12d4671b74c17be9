//! P-values adjusted for many tests (32 layers, several smoothings).
//!
//! With `p_(1) <= ... <= p_(m)`; each result is cut at 1 and returned in the order of the input:
//!
//! | name | adjusted `p_(i)` | controls |
//! | --- | --- | --- |
//! | Benjamini-Hochberg | `min over j >= i of m p_(j) / j` | false discovery rate, positive dependence |
//! | Benjamini-Yekutieli | the same times `1 + 1/2 + ... + 1/m` | false discovery rate, any dependence |
//! | Holm | `max over j <= i of (m - j + 1) p_(j)` | family error, any dependence |
//! | Bonferroni | `m p_(i)` | family error, any dependence |
//!
//! Every input must be a p-value in `[0, 1]`; undefined ones are left out by the caller, which also sets `m`.
//! Neighbouring layers are strongly correlated: [`crate::permutation::max_t_p`] uses that and loses less.
//!
//! # References
//!
//! Benjamini & Hochberg 1995, *JRSS B* 57:289; Benjamini & Yekutieli 2001, *Annals of Statistics* 29:1165; Holm 1979,
//! *Scandinavian J. Statistics* 6:65.

/// Benjamini-Hochberg q-values of `p` (`[m]`), `[m]`.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    step_up(p, 1.0)
}

/// Benjamini-Yekutieli q-values of `p` (`[m]`), `[m]`.
pub fn benjamini_yekutieli(p: &[f64]) -> Vec<f64> {
    let harmonic: f64 = (1..=p.len()).map(|i| 1.0 / i as f64).sum();
    step_up(p, harmonic)
}

/// Holm's adjusted p-values of `p` (`[m]`), `[m]`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &i) in ascending(p).iter().enumerate() {
        largest = largest.max(p[i] * (p.len() - rank) as f64);
        adjusted[i] = largest.min(1.0);
    }
    adjusted
}

/// Bonferroni's adjusted p-values of `p` (`[m]`), `[m]`.
pub fn bonferroni(p: &[f64]) -> Vec<f64> {
    let m = p.len() as f64;
    p.iter().map(|p| (p * m).min(1.0)).collect()
}

fn step_up(p: &[f64], factor: f64) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut smallest = 1.0_f64;
    for (rank, &i) in ascending(p).iter().enumerate().rev() {
        let share = (rank + 1) as f64 / p.len() as f64 / factor;
        smallest = smallest.min(p[i] / share);
        adjusted[i] = smallest;
    }
    adjusted
}

/// Indices of `p` in ascending order.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(want) {
            assert!((g - w).abs() < 1e-15, "{got:?} against {want:?}");
        }
    }

    #[test]
    fn by_hand() {
        let p = [0.04, 0.01, 0.03];
        near(&benjamini_hochberg(&p), &[0.04, 0.03, 0.04]);
        near(&benjamini_yekutieli(&p), &[0.04 * 11.0 / 6.0, 0.03 * 11.0 / 6.0, 0.04 * 11.0 / 6.0]);
        near(&holm(&p), &[0.06, 0.03, 0.06]);
        near(&bonferroni(&p), &[0.12, 0.03, 0.09]);
    }

    #[test]
    fn cut_at_one_and_empty() {
        near(&bonferroni(&[0.7, 0.6]), &[1.0, 1.0]);
        near(&holm(&[0.7, 0.6]), &[1.0, 1.0]);
        for f in [benjamini_hochberg, benjamini_yekutieli, holm, bonferroni] {
            assert!(f(&[]).is_empty());
        }
    }
}
