//! Cochran's Q: do several policies answer the same problems right equally often?
//!
//! For `k` policies, column sums `C_j` (right answers of policy j), row sums `R_i` (policies that answer problem i):
//!
//! ```text
//! Q = (k - 1) (k sum(C_j^2) - N^2) / (k N - sum(R_i^2)),   N = sum(C_j),   df = k - 1
//! ```
//!
//! To be asked before pairwise tests between many policies. With two policies `Q` is `McNemar`'s chi-squared.
//!
//! # References
//!
//! Cochran 1950, *Biometrika* 37:256.

use crate::distributions::tails;

/// Cochran's Q with its chi-squared p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CochranQ {
    /// The statistic.
    pub q: f64,
    /// Degrees of freedom, policies - 1.
    pub df: u32,
    /// P-value, asymptotic in the number of discordant problems.
    pub p: f64,
}

/// The test; `right` is one column a policy, each `[problems]`.
///
/// Undefined (`None`) for fewer than two policies, or when no problem separates any two policies.
///
/// # Panics
///
/// If the columns differ in length.
pub fn cochran_q(right: &[&[bool]]) -> Option<CochranQ> {
    let k = right.len() as u64;
    let df = u32::try_from(k.checked_sub(1)?).ok()?;
    let problems = right.first()?.len();
    let mut rows = vec![0_u64; problems];
    let mut columns = Vec::with_capacity(right.len());
    for column in right {
        assert_eq!(column.len(), problems, "one outcome a problem");
        columns.push(column.iter().filter(|&&r| r).count() as u64);
        for (row, &r) in rows.iter_mut().zip(*column) {
            *row += u64::from(r);
        }
    }
    let n: u64 = columns.iter().sum();
    let spread = k * n - rows.iter().map(|r| r * r).sum::<u64>();
    if spread == 0 {
        return None;
    }
    let between = k * columns.iter().map(|c| c * c).sum::<u64>() - n * n;
    let q = f64::from(df) * between as f64 / spread as f64;
    Some(CochranQ { q, df, p: tails::chi_squared_sf(q, df)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_policies_are_mcnemar() {
        let a = [true, true, true, false, true];
        let b = [true, false, false, true, true];
        let q = cochran_q(&[&a, &b]).expect("discordant");
        let m = crate::tests::mcnemar::mcnemar(2, 1);
        assert!((q.q - m.chi2.expect("discordant")).abs() < 1e-15);
        assert!((q.p - m.p_chi2.expect("discordant")).abs() < 1e-15);
    }

    #[test]
    fn by_hand() {
        // C = 3, 2, 0; R = 2, 2, 1, 0; Q = 2 (3*13 - 25) / (15 - 9)
        let q = cochran_q(&[&[true, true, true, false], &[true, true, false, false], &[false; 4]]).expect("discordant");
        assert!((q.q - 28.0 / 6.0).abs() < 1e-15);
        assert!((q.p - (-14.0_f64 / 6.0).exp()).abs() < 1e-14);
    }

    #[test]
    fn undefined_without_discordance() {
        assert_eq!(cochran_q(&[&[true, false], &[true, false]]), None);
        assert_eq!(cochran_q(&[&[true]]), None);
        assert_eq!(cochran_q(&[]), None);
    }
}
