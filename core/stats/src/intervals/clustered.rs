//! Standard error of a mean when values come in groups (samples of one problem, problems of one source).
//!
//! With `e_i = x_i - mean` and `G` groups:
//!
//! ```text
//! se_cr0 = sqrt(sum over groups of (sum of e_i in the group)^2) / n
//! se_cr1 = se_cr0 sqrt(G / (G - 1))
//! se_iid = sd(x) / sqrt(n)
//! ```
//!
//! # References
//!
//! Liang & Zeger 1986, *Biometrika* 73:13; Miller 2024, arXiv 2411.00640, section 2.

use std::collections::BTreeMap;

use crate::moments;

/// A mean with its standard errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusteredMean {
    /// The mean.
    pub mean: f64,
    /// Values.
    pub n: usize,
    /// Groups.
    pub n_groups: usize,
    /// Clustered, without small-sample correction; `None` for one group.
    pub se_cr0: Option<f64>,
    /// Clustered, times `sqrt(G / (G - 1))`; `None` for one group.
    pub se_cr1: Option<f64>,
    /// As if all values were independent; `None` for one value.
    pub se_iid: Option<f64>,
}

/// The mean of `values` (`[n]`) with `groups` (`[n]`) naming the group of each.
///
/// Undefined (`None`) without values or with a non-finite one. With one group the clustered errors are `None`: its
/// residuals sum to 0 by construction, which says nothing.
///
/// # Panics
///
/// If the lengths differ.
pub fn clustered_se<G: Ord>(values: &[f64], groups: &[G]) -> Option<ClusteredMean> {
    assert_eq!(values.len(), groups.len(), "one group a value");
    let mean = moments::mean(values)?;
    let mut residuals: BTreeMap<&G, f64> = BTreeMap::new();
    for (x, group) in values.iter().zip(groups) {
        *residuals.entry(group).or_insert(0.0) += x - mean;
    }
    let n_groups = residuals.len();
    let squares: f64 = residuals.values().map(|r| r * r).sum();
    let se_cr0 = (n_groups > 1).then(|| squares.sqrt() / values.len() as f64);
    Some(ClusteredMean {
        mean,
        n: values.len(),
        n_groups,
        se_cr0,
        se_cr1: se_cr0.map(|se| se * (n_groups as f64 / (n_groups - 1) as f64).sqrt()),
        se_iid: moments::standard_error(values),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // mean 3; group sums of residuals -3, 3: sqrt(18)/4
        let got = clustered_se(&[1.0, 2.0, 4.0, 5.0], &["a", "a", "b", "b"]).expect("defined");
        assert!((got.se_cr0.expect("two groups") - 18.0_f64.sqrt() / 4.0).abs() < 1e-15);
        assert!((got.se_cr1.expect("two groups") - 36.0_f64.sqrt() / 4.0).abs() < 1e-15);
    }

    #[test]
    fn groups_of_one_are_the_plain_error() {
        let got = clustered_se(&[1.0, 0.0, 1.0, 1.0], &[0, 1, 2, 3]).expect("defined");
        let (cr1, iid) = (got.se_cr1.expect("groups"), got.se_iid.expect("values"));
        assert!((cr1 - iid).abs() < 1e-15);
    }

    #[test]
    fn one_group_is_undefined() {
        let got = clustered_se(&[1.0, 2.0], &[7, 7]).expect("mean defined");
        assert_eq!((got.se_cr0, got.se_cr1), (None, None));
        assert_eq!(clustered_se::<u8>(&[], &[]), None);
    }
}
