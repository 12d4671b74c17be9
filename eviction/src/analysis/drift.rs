//! How far signals under eviction drift from those without, at the same tokens.
//!
//! ```text
//! drift = mean |value - full value| / mean |full value|          rho = mean over series of Spearman's rho of the two
//! ```
//!
//! A series is one signal and layer of one generation, up to the first token that differs from the generation without
//! eviction: beyond it the two speak of other tokens.

use std::collections::BTreeMap;

use epikv_schemas::{EvictionRun, EvictionSignal};
use epikv_stats::moments::mean;
use epikv_stats::spearman;
use serde::Serialize;

use crate::error::Result;
use crate::experiment::cells::Cells;

/// Tokens of a series of which a coefficient is taken.
const LEAST_TOKENS: usize = 8;

/// The drift of one signal under one policy and budget, over layers and generations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// Policy.
    pub policy: String,
    /// Budget as asked for.
    pub budget: Option<String>,
    /// The signal.
    pub signal: String,
    /// Tokens that both have, over layers and generations.
    pub n: usize,
    /// Mean absolute difference in units of the mean absolute value; null without tokens.
    pub drift: Option<f64>,
    /// Mean of Spearman's rho over series of eight tokens or more that vary; null without one.
    pub rho: Option<f64>,
}

/// A generation and layer.
type Series = (String, i32, Option<i32>);

/// Sums of one group.
#[derive(Default)]
struct Sums {
    n: usize,
    difference: f64,
    size: f64,
    series: BTreeMap<Series, (Vec<f64>, Vec<f64>)>,
}

/// The drift of every signal under every policy that evicts.
#[derive(Default)]
pub(crate) struct Drifts(BTreeMap<(String, Option<String>, String), Sums>);

impl Drifts {
    /// Takes in what was recorded of some generations.
    pub(crate) fn add(&mut self, rows: &[EvictionSignal]) {
        for row in rows.iter().filter(|row| row.budget.is_some()) {
            if let (Some(value), Some(full)) = (row.value, row.full_value) {
                let (value, full) = (f64::from(value), f64::from(full));
                let sums = self.0.entry((row.policy.clone(), row.budget.clone(), row.signal.clone())).or_default();
                sums.n += 1;
                sums.difference += (value - full).abs();
                sums.size += full.abs();
                let series = sums.series.entry((row.problem_id.clone(), row.sample, row.layer)).or_default();
                series.0.push(value);
                series.1.push(full);
            }
        }
    }

    /// The figures, in order of names.
    pub(crate) fn finish(self) -> Vec<Drift> {
        let one = |((policy, budget, signal), sums): (_, Sums)| {
            let long = sums.series.values().filter(|(own, _)| own.len() >= LEAST_TOKENS);
            let all: Vec<f64> = long.filter_map(|(own, full)| spearman(own, full)).collect();
            Drift {
                policy,
                budget,
                signal,
                n: sums.n,
                drift: (sums.size > 0.0).then(|| sums.difference / sums.size),
                rho: mean(&all),
            }
        };
        self.0.into_iter().map(one).collect()
    }
}

impl Cells {
    /// How far the recorded signals of finished cells drifted.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn drift(&self, rows: &[EvictionRun]) -> Result<Vec<Drift>> {
        let mut drifts = Drifts::default();
        for row in rows {
            drifts.add(&self.signals_of(&row.cell)?);
        }
        Ok(drifts.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let row = |pos: i32, value: f32, full_value: Option<f32>| EvictionSignal {
            problem_id: "a".to_owned(),
            policy: "window".to_owned(),
            budget: Some("30".to_owned()),
            sample: 0,
            signal: "hs_l2".to_owned(),
            layer: Some(1),
            pos,
            value: Some(value),
            full_value,
        };
        let mut drifts = Drifts::default();
        let rows: Vec<_> = (0..10).map(|pos| row(pos, pos as f32 + 1.5, Some(pos as f32 + 1.0))).collect();
        drifts.add(&rows);
        drifts.add(&[row(10, 99.0, None), EvictionSignal { budget: None, ..row(11, 1.0, Some(9.0)) }]);
        let [drift] = &drifts.finish()[..] else { panic!("one group") };
        assert_eq!(drift.n, 10);
        assert!((drift.drift.expect("tokens") - 5.0 / 55.0).abs() < 1e-12);
        assert!((drift.rho.expect("varies") - 1.0).abs() < 1e-12);
    }
}
