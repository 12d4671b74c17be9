//! Partial Spearman correlation: what is left of rho once controls, usually the position, are held fixed.
//!
//! All columns are ranked, then the partial Pearson correlation of the ranks is taken. For one control:
//!
//! ```text
//! r_xy.p = (r_xy - r_xp r_yp) / sqrt((1 - r_xp^2) (1 - r_yp^2)),    df = n - k - 2
//! ```
//!
//! For `k` controls the same number comes from the Cholesky factor of the rank correlation matrix with the controls
//! first (equal to the inverse-covariance form). A control that the earlier ones determine already adds nothing and is
//! passed over; it still counts in `k`.
//!
//! # References
//!
//! Kendall 1942, *Biometrika* 32:277; Kendall & Stuart 1973, chapter 27.

use crate::correlation::spearman::{spearman_of_ranks, student_p};
use crate::ranks::rank::Midranks;

/// Below this share of its own variance a column counts as determined by the controls.
const REDUNDANT: f64 = 1e-13;

/// A partial correlation with its test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartialRho {
    /// The partial correlation of the ranks.
    pub r: f64,
    /// Tokens.
    pub n: usize,
    /// Controls.
    pub k: usize,
    /// `n - k - 2`; `None` when negative.
    pub dof: Option<usize>,
    /// Two-sided p-value, `t = r sqrt(dof / (1 - r^2))`; assumes independent tokens. `None` without degrees of freedom.
    pub p: Option<f64>,
}

/// Partial Spearman correlation of `x` and `y` (`[n]`) given `controls` (`k` columns, each `[n]`).
/// Cost `O(k n log n + k^2 n)`.
///
/// Undefined (`None`) when `x` or `y` is constant or determined by the controls, or a column holds a `NaN`.
///
/// # Panics
///
/// If the lengths differ.
pub fn partial_spearman(x: &[f64], y: &[f64], controls: &[&[f64]]) -> Option<PartialRho> {
    let mut columns = controls.iter().map(|c| Midranks::new(c)).collect::<Option<Vec<_>>>()?;
    columns.push(Midranks::new(x)?);
    columns.push(Midranks::new(y)?);
    let k = controls.len();
    let r = partial_of_ranks(&columns.iter().collect::<Vec<_>>())?;
    let dof = x.len().checked_sub(k + 2);
    Some(PartialRho { r, n: x.len(), k, dof, p: dof.and_then(|df| student_p(r, df as f64)) })
}

/// The partial correlation of `x` and `y` given one control, for callers that have ranked them.
///
/// Undefined (`None`) as [`partial_spearman`] is.
///
/// # Panics
///
/// If the lengths differ.
pub fn partial_rho_of_ranks(x: &Midranks, y: &Midranks, control: &Midranks) -> Option<f64> {
    partial_of_ranks(&[control, x, y])
}

/// The partial correlation of the last two columns given the others.
fn partial_of_ranks(columns: &[&Midranks]) -> Option<f64> {
    let size = columns.len();
    let (x, y) = (size - 2, size - 1);
    // Rows of the lower Cholesky factor. A redundant control gets a zero pivot and a zero column.
    let mut factor = vec![vec![0.0_f64; size]; size];
    for i in 0..size {
        for j in 0..=i {
            let r = if i == j { 1.0 } else { spearman_of_ranks(columns[i], columns[j]).unwrap_or(0.0) };
            let known: f64 = (0..j).map(|c| factor[i][c] * factor[j][c]).sum();
            let left = r - known;
            factor[i][j] = if i == j {
                let constant = columns[i].spread() == 0;
                if constant || left < REDUNDANT { 0.0 } else { left.sqrt() }
            } else if factor[j][j] > 0.0 {
                left / factor[j][j]
            } else {
                0.0
            };
        }
    }
    if factor[x][x] <= 0.0 {
        return None;
    }
    // Given the controls, y keeps (factor[y][x], factor[y][y]), of which the first runs along x.
    let along = factor[y][x];
    let across = factor[y][y];
    let length = along.hypot(across);
    if columns[y].spread() == 0 || length * length < REDUNDANT {
        return None;
    }
    Some((along / length).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlation::spearman::spearman;

    const X: [f64; 10] = [1.0, 2.0, 2.0, 3.0, 5.0, 4.0, 7.0, 7.0, 9.0, 8.0];
    const Y: [f64; 10] = [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    const POS: [f64; 10] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

    #[test]
    fn one_control_by_the_closed_form() {
        let (xy, xp, yp) = (
            spearman(&X, &Y).expect("defined"),
            spearman(&X, &POS).expect("defined"),
            spearman(&Y, &POS).expect("defined"),
        );
        let want = (xy - xp * yp) / ((1.0 - xp * xp) * (1.0 - yp * yp)).sqrt();
        let got = partial_spearman(&X, &Y, &[&POS]).expect("defined");
        assert!((got.r - want).abs() < 1e-14);
        assert_eq!(got.dof, Some(7));
        let [x, y, pos] = [X, Y, POS].map(|column| Midranks::new(&column).expect("no NaN"));
        assert_eq!(partial_rho_of_ranks(&x, &y, &pos), Some(got.r));
    }

    #[test]
    fn no_control_is_spearman() {
        let got = partial_spearman(&X, &Y, &[]).expect("defined").r;
        assert!((got - spearman(&X, &Y).expect("defined")).abs() < 1e-15);
    }

    #[test]
    fn redundant_controls_change_nothing_but_k() {
        let constant = [3.0; 10];
        let twice: Vec<f64> = POS.iter().map(|p| 2.0 * p).collect();
        let one = partial_spearman(&X, &Y, &[&POS]).expect("defined");
        let three = partial_spearman(&X, &Y, &[&POS, &twice, &constant]).expect("defined");
        assert!((one.r - three.r).abs() < 1e-13);
        assert_eq!((three.k, three.dof), (3, Some(5)));
    }

    #[test]
    fn undefined() {
        assert_eq!(partial_spearman(&POS, &Y, &[&POS]), None);
        assert_eq!(partial_spearman(&X, &POS, &[&POS]), None);
        assert_eq!(partial_spearman(&X, &[1.0; 10], &[&POS]), None);
        assert_eq!(partial_spearman(&X[..2], &Y[1..3], &[&POS[..2]]), None);
    }
}
