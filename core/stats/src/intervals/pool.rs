//! Pooling one coefficient a trace into one figure, in Fisher z.
//!
//! `z_i = atanh(rho_i)`, pooled `rho = tanh(sum(w_i z_i) / sum(w_i))`:
//!
//! | weight | `w_i` | interval of the mean z |
//! | --- | --- | --- |
//! | equal | 1 | Student's t on the `z_i`, `k - 1` df; contains the variance between traces |
//! | n-minus-3 | `n_i - 3` | normal, `se^2 = 1 / sum(w)`; takes tokens as independent, which they are not |
//! | random-effects | `1 / (1/(n_i - 3) + tau^2)` | normal, `se^2 = 1 / sum(w)` |
//!
//! `tau^2 = max(0, (Q - (k-1)) / (sum(v) - sum(v^2)/sum(v)))` with `v_i = n_i - 3`, `Q = sum(v_i (z_i - zbar_v)^2)`.
//!
//! Undefined coefficients (constant label or signal) are left out by the caller and counted there; they are never 0.
//!
//! # References
//!
//! Fisher 1921, *Metron* 1:3; `DerSimonian` & Laird 1986, *Controlled Clinical Trials* 7:177.

use crate::intervals::confidence::Confidence;
use crate::intervals::fisher::fisher_z;
use crate::moments;

/// `|rho|` is clipped here before `atanh`, which is infinite at 1.
pub const CLIP: f64 = 1.0 - 1e-12;

epikv_words::words! {
    /// How much a trace counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum PoolWeight {
        /// The trace is the unit.
        #[default]
        Equal = "equal",
        /// Tokens are the unit, as if independent. For comparison only. A trace of 3 tokens or fewer weighs nothing.
        NMinus3 = "n-minus-3",
        /// `DerSimonian`-Laird: tokens and a variance between traces.
        RandomEffects = "random-effects",
    }
}

/// Coefficients of many traces as one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledRho {
    /// Traces.
    pub k: usize,
    /// Traces whose coefficient was clipped at [`CLIP`].
    pub k_clipped: usize,
    /// The weighted mean of `z_i`.
    pub mean_z: f64,
    /// `tanh(mean_z)`.
    pub rho: f64,
    /// The plain mean of the coefficients themselves, unweighted.
    pub mean_raw: f64,
    /// Standard error of `mean_z`; `None` for one trace under equal weights.
    pub se_z: Option<f64>,
    /// Lower bound of rho; `None` as `se_z`.
    pub lo: Option<f64>,
    /// Upper bound of rho; `None` as `se_z`.
    pub hi: Option<f64>,
    /// Variance between traces; only for random effects.
    pub tau2: Option<f64>,
}

/// `atanh(rho)` after clipping `|rho|` at [`CLIP`], and whether it was clipped.
pub fn clipped_z(rho: f64) -> (f64, bool) {
    (fisher_z(rho.clamp(-CLIP, CLIP)), rho.abs() > CLIP)
}

/// Pools per-trace coefficients `rhos` (`[k]`) of traces with `lengths` (`[k]`) usable tokens.
///
/// Undefined (`None`) without traces, with a `NaN`, or when every weight is 0.
///
/// # Panics
///
/// If the lengths of the columns differ.
pub fn pool_fisher(rhos: &[f64], lengths: &[u64], weight: PoolWeight, confidence: Confidence) -> Option<PooledRho> {
    assert_eq!(rhos.len(), lengths.len(), "one length a trace");
    if rhos.iter().any(|r| r.is_nan()) {
        return None;
    }
    let clipped: Vec<(f64, bool)> = rhos.iter().map(|&r| clipped_z(r)).collect();
    let z: Vec<f64> = clipped.iter().map(|c| c.0).collect();
    let by_length: Vec<f64> = lengths.iter().map(|&n| n.saturating_sub(3) as f64).collect();
    let tau2 = match weight {
        PoolWeight::RandomEffects => Some(between_variance(&z, &by_length)?),
        PoolWeight::Equal | PoolWeight::NMinus3 => None,
    };
    let weights = match tau2 {
        _ if weight == PoolWeight::Equal => vec![1.0; z.len()],
        Some(tau2) => by_length.iter().map(|&v| if v > 0.0 { 1.0 / (1.0 / v + tau2) } else { 0.0 }).collect(),
        None => by_length,
    };
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        return None;
    }
    let mean_z = weighted_mean(&z, &weights, total);
    let (se_z, critical) = match weight {
        PoolWeight::Equal => {
            let df = z.len().saturating_sub(1) as f64;
            (moments::standard_error(&z), confidence.t(df))
        }
        PoolWeight::NMinus3 | PoolWeight::RandomEffects => (Some((1.0 / total).sqrt()), Some(confidence.z())),
    };
    let bound = |sign: f64| Some((mean_z + sign * critical? * se_z?).tanh());
    Some(PooledRho {
        k: rhos.len(),
        k_clipped: clipped.iter().filter(|c| c.1).count(),
        mean_z,
        rho: mean_z.tanh(),
        mean_raw: moments::mean(rhos)?,
        se_z,
        lo: bound(-1.0),
        hi: bound(1.0),
        tau2,
    })
}

/// The moment estimate of the variance between traces; `None` when every weight is 0.
fn between_variance(z: &[f64], v: &[f64]) -> Option<f64> {
    let total: f64 = v.iter().sum();
    if total <= 0.0 {
        return None;
    }
    let mean = weighted_mean(z, v, total);
    let q: f64 = z.iter().zip(v).map(|(z, v)| v * (z - mean).powi(2)).sum();
    let k = v.iter().filter(|&&v| v > 0.0).count();
    let scale = total - v.iter().map(|v| v * v).sum::<f64>() / total;
    Some(if k < 2 { 0.0 } else { ((q - (k - 1) as f64) / scale).max(0.0) })
}

fn weighted_mean(z: &[f64], weights: &[f64], total: f64) -> f64 {
    z.iter().zip(weights).map(|(z, w)| z * w).sum::<f64>() / total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(rhos: &[f64], lengths: &[u64], weight: PoolWeight) -> PooledRho {
        pool_fisher(rhos, lengths, weight, Confidence::P95).expect("defined")
    }

    #[test]
    fn equal_weights_by_hand() {
        let rhos = [1.0_f64.tanh(), 2.0_f64.tanh(), 3.0_f64.tanh()];
        let p = pooled(&rhos, &[10, 1000, 10], PoolWeight::Equal);
        assert!((p.mean_z - 2.0).abs() < 1e-12);
        // sd 1, se 1/sqrt(3), t(2) = 4.302653
        let half = 4.302_652_729_749_464 / 3.0_f64.sqrt();
        assert!((p.lo.expect("k > 1") - (2.0 - half).tanh()).abs() < 1e-12);
    }

    #[test]
    fn length_weights_by_hand() {
        let p = pooled(&[0.0, 1.0_f64.tanh()], &[4, 6], PoolWeight::NMinus3);
        assert!((p.mean_z - 0.75).abs() < 1e-15);
        assert!((p.se_z.expect("defined") - 0.5).abs() < 1e-15);
        assert!((p.mean_raw - 1.0_f64.tanh() / 2.0).abs() < 1e-15);
    }

    #[test]
    fn random_effects_by_hand() {
        // v = 1, 1; z = 0, 4: Q = 8, scale = 2 - 1, tau2 = 7, se^2 = 8/2.
        let p = pooled(&[0.0, 4.0_f64.tanh()], &[4, 4], PoolWeight::RandomEffects);
        assert!((p.tau2.expect("random effects") - 7.0).abs() < 1e-9);
        assert!((p.se_z.expect("defined") - 2.0).abs() < 1e-9);
        // Alike traces: no variance between them, so the weights are those of n - 3.
        let p = pooled(&[0.2, 0.2], &[10, 20], PoolWeight::RandomEffects);
        assert_eq!(p.tau2, Some(0.0));
    }

    #[test]
    fn clips_and_counts() {
        let p = pooled(&[1.0, -1.0, 0.5], &[9, 9, 9], PoolWeight::Equal);
        assert_eq!(p.k_clipped, 2);
        assert!((p.mean_z - 0.5_f64.atanh() / 3.0).abs() < 1e-12);
    }

    #[test]
    fn undefined() {
        assert_eq!(pool_fisher(&[], &[], PoolWeight::Equal, Confidence::P95), None);
        assert_eq!(pool_fisher(&[0.1], &[3], PoolWeight::NMinus3, Confidence::P95), None);
        let one = pooled(&[0.1], &[9], PoolWeight::Equal);
        assert_eq!((one.se_z, one.lo), (None, None));
    }
}
