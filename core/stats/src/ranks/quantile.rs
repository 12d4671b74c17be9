//! Quantiles by linear interpolation between order statistics (type 7), the default of `NumPy` and R.
//!
//! For sorted `x` and `h = (n - 1) q`: `x[floor(h)] + (h - floor(h)) (x[floor(h) + 1] - x[floor(h)])`.
//!
//! # References
//!
//! Hyndman & Fan 1996, *American Statistician* 50:361, definition 7.

/// The `q`-quantile of `sorted` (`[n]`, ascending), `0 <= q <= 1`.
///
/// Undefined (`None`) without values or for `q` outside `[0, 1]`.
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let last = sorted.len().checked_sub(1)?;
    let h = last as f64 * q;
    let at = (h.floor() as usize).min(last);
    let (below, above) = (sorted[at], sorted[(at + 1).min(last)]);
    let t = h - at as f64;
    // Interpolating from the nearer end keeps the result monotone in q and exact at t = 1.
    Some(if below.to_bits() == above.to_bits() {
        below
    } else if t < 0.5 {
        below + (above - below) * t
    } else {
        above - (above - below) * (1.0 - t)
    })
}

/// The `q`-quantile of `x` (`[n]`, any order). Undefined (`None`) as [`quantile_of_sorted`], or with a `NaN`.
pub fn quantile(x: &[f64], q: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(x)?, q)
}

/// The median. Undefined (`None`) without values or with a `NaN`.
pub fn median(x: &[f64]) -> Option<f64> {
    quantile(x, 0.5)
}

/// `x` in ascending order; `None` with a `NaN`.
pub(crate) fn sorted(x: &[f64]) -> Option<Vec<f64>> {
    if x.iter().any(|v| v.is_nan()) {
        return None;
    }
    let mut sorted = x.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let x = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&x), Some(2.5));
        assert_eq!((quantile(&x, 0.25), quantile(&x, 0.75)), (Some(1.75), Some(3.25)));
        assert_eq!((quantile(&x, 0.0), quantile(&x, 1.0)), (Some(1.0), Some(4.0)));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn undefined() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
    }
}
