//! The difference of two paired shares: Tango's score interval, and how many pairs a margin needs.
//!
//! With `b` pairs right under A only, `c` under B only, `n` pairs, and `delta = p_A - p_B`:
//!
//! ```text
//! z(delta) = (b - c - n delta) / sqrt(n (2 q + delta (1 - delta)))
//! q        = (sqrt(B^2 - 8 n C) - B) / (4 n),   B = (2 n - b + c) delta - b - c,   C = -c delta (1 - delta)
//! ```
//!
//! `q` is the share of pairs that are right under B only, estimated under `delta`. The bounds are the two `delta` at which
//! `|z|` is the normal critical value. At `b = c = 0` they are `-+ z^2 / (n + z^2)`, where Wald's interval has no width and
//! calls two policies equal for any `n`.
//!
//! ```text
//! n(margin) = (z_(1-alpha/2) sqrt(psi) + z_power sqrt(psi - margin^2))^2 / margin^2        psi = share of discordant pairs
//! ```
//!
//! # References
//!
//! Tango 1998, *Statistics in Medicine* 17:891; Connor 1987, *Biometrics* 43:207; Fagerland, Lydersen & Laake 2014,
//! *Statistics in Medicine* 33:2850 (which of many intervals to use).

use crate::distributions::tails::normal_quantile;
use crate::intervals::confidence::Confidence;

/// Lower and upper bound.
pub type Bounds = (f64, f64);

/// Halvings of the range of differences: to the last bit of a number near 1.
const HALVINGS: usize = 60;

/// Tango's interval of `p_A - p_B` for `only_a` pairs right under A only and `only_b` under B only, of `n`.
///
/// Undefined (`None`) without pairs or with more discordant pairs than pairs.
pub fn tango(only_a: u64, only_b: u64, n: u64, confidence: Confidence) -> Option<Bounds> {
    if n == 0 || only_a.checked_add(only_b).is_none_or(|discordant| discordant > n) {
        return None;
    }
    let (b, c, n) = (only_a as f64, only_b as f64, n as f64);
    let critical = confidence.z();
    let estimate = (b - c) / n;
    // z falls as delta rises.
    let bound = |mut inside: f64, mut outside: f64, beyond: fn(f64, f64) -> bool| {
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(inside, outside);
            if beyond(score(b, c, n, middle), critical) {
                outside = middle;
            } else {
                inside = middle;
            }
        }
        f64::midpoint(inside, outside)
    };
    Some((bound(estimate, -1.0, |z, critical| z > critical), bound(estimate, 1.0, |z, critical| z < -critical)))
}

/// The score statistic at a difference strictly between -1 and 1.
fn score(b: f64, c: f64, n: f64, delta: f64) -> f64 {
    let (half_b, c_term) = ((2.0 * n - b + c) * delta - b - c, -c * delta * (1.0 - delta));
    let root = (half_b * half_b - 8.0 * n * c_term).max(0.0).sqrt();
    let only_b = ((root - half_b) / (4.0 * n)).max(0.0);
    let variance = n * (2.0 * only_b + delta * (1.0 - delta));
    let distance = b - c - n * delta;
    if variance > 0.0 {
        distance / variance.sqrt()
    } else if distance == 0.0 {
        0.0
    } else {
        distance.signum() * f64::INFINITY
    }
}

/// Pairs at which a difference as large as `margin` is found at level `alpha`, two-sided, with probability `power`, if a
/// share `discordant` of the pairs is right under one policy only. A difference of `margin` takes at least that share.
///
/// Undefined (`None`) for a margin, level or power outside (0, 1) or a share outside `[0, 1]`.
pub fn pairs_for_margin(margin: f64, discordant: f64, alpha: f64, power: f64) -> Option<u64> {
    let inside = |x: f64| x > 0.0 && x < 1.0;
    if !inside(margin) || !inside(alpha) || !inside(power) || !(0.0..=1.0).contains(&discordant) {
        return None;
    }
    let psi = discordant.max(margin);
    let root = -normal_quantile(alpha / 2.0) * psi.sqrt() + normal_quantile(power) * (psi - margin * margin).sqrt();
    Some((root / margin).powi(2).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_intervals() {
        // Fagerland, Lydersen & Laake 2014, table of the airway data: 1 and 7 discordant of 21 pairs.
        let (lo, hi) = tango(1, 7, 21, Confidence::P95).expect("pairs");
        assert!((lo + 0.517).abs() < 5e-4 && (hi + 0.026).abs() < 5e-4, "{lo} {hi}");
        assert_eq!(
            tango(7, 1, 21, Confidence::P95).map(|(lo, hi)| ((lo * 1e9).round(), (hi * 1e9).round())),
            Some(((-hi * 1e9).round(), (-lo * 1e9).round())),
            "the other way round"
        );
    }

    #[test]
    fn no_discordant_pair_is_no_proof_of_equality() {
        let z2 = Confidence::P95.z().powi(2);
        for n in [1, 20, 500] {
            let (lo, hi) = tango(0, 0, n, Confidence::P95).expect("pairs");
            let want = z2 / (n as f64 + z2);
            assert!((lo + want).abs() < 1e-12 && (hi - want).abs() < 1e-12, "{n}: {lo} {hi}");
        }
    }

    #[test]
    fn the_bounds_solve_their_equation() {
        for (b, c, n) in [(3, 9, 40), (12, 0, 12), (5, 5, 100), (0, 1, 2)] {
            let (lo, hi) = tango(b, c, n, Confidence::P95).expect("pairs");
            assert!(lo <= hi && lo >= -1.0 && hi <= 1.0);
            for bound in [lo, hi].into_iter().filter(|x| x.abs() < 0.999_999) {
                let z = score(b as f64, c as f64, n as f64, bound).abs();
                assert!((z - Confidence::P95.z()).abs() < 1e-6, "{b} {c} {n}: {bound} has z {z}");
            }
        }
        assert_eq!(tango(1, 0, 0, Confidence::P95), None);
        assert_eq!(tango(3, 3, 5, Confidence::P95), None);
    }

    #[test]
    fn pairs_by_hand() {
        // (1.959964 sqrt(0.2) + 0.841621 sqrt(0.2 - 0.01))^2 / 0.01 = 154.8
        assert_eq!(pairs_for_margin(0.1, 0.2, 0.05, 0.8), Some(155));
        assert!(pairs_for_margin(0.1, 0.0, 0.05, 0.8) == pairs_for_margin(0.1, 0.1, 0.05, 0.8));
        assert_eq!(pairs_for_margin(0.0, 0.2, 0.05, 0.8), None);
        assert_eq!(pairs_for_margin(0.1, 1.2, 0.05, 0.8), None);
    }
}
