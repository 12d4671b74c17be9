//! Coefficients of many problems by column, for comparisons of problem sets and models.
//!
//! A group is one problem set under one model. It comes from this study, or from the `correlations_by_trace` of another
//! run. A problem has one coefficient, the mean over its traces in Fisher's z. Besides the columns there are contrasts over the
//! layers of `hs_l2`, one number a problem:
//!
//! | contrast | of the `z_l`, the mean of `atanh(rho_l)` over the traces of a problem |
//! | --- | --- |
//! | `band_a`, `band_b` | mean over the layers of the band, mapped to the model's depth |
//! | `a_less_b` | their difference |
//! | `trend` | `sum z_l x_l / sum x_l^2`, with `x_l` the depth of the layer from -1 to 1: positive where deep layers have the larger coefficient |
//!
//! They have the same meaning in models of different depth, which single layers have not.

use std::collections::BTreeMap;

use epikv_schemas::CorrelationsByTrace;
use epikv_stats::moments::mean;
use epikv_stats::pool::clipped_z;

use crate::study::bands::{BAND_SIGNAL, Band};
use crate::study::findings::{DatasetFindings, Source};

/// A signal of the model, its layer and its smoother, as the files name them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColumnKey {
    /// The signal.
    pub signal: String,
    /// Its layer; `None` for the whole model.
    pub layer: Option<i16>,
    /// Its smoother.
    pub smoothing: String,
}

epikv_words::words! {
    /// A contrast over layers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Contrast {
        /// Mean over band A.
        BandA = "band_a",
        /// Mean over band B.
        BandB = "band_b",
        /// Their difference.
        ALessB = "a_less_b",
        /// Slope over the depth.
        Trend = "trend",
    }
}

impl Contrast {
    /// Of the coefficients of a problem, one a layer; `None` without layers.
    pub fn of(self, z: &[f64]) -> Option<f64> {
        let band = |at: usize| mean(z.get(Band::both(z.len())[at].layers.clone())?);
        match self {
            _ if z.is_empty() => None,
            Self::BandA => band(0),
            Self::BandB => band(1),
            Self::ALessB => Some(band(0)? - band(1)?),
            Self::Trend => {
                let depth = |layer: usize| (2 * layer) as f64 / (z.len() - 1) as f64 - 1.0;
                let squares: f64 = (0..z.len()).map(|layer| depth(layer).powi(2)).sum();
                let sum: f64 = z.iter().enumerate().map(|(layer, z)| z * depth(layer)).sum();
                (z.len() > 1).then(|| sum / squares)
            }
        }
    }
}

/// A problem set under a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Whose coefficients they are, such as the model's name.
    pub run: String,
    /// The problem set.
    pub dataset: String,
    /// Fisher's z of each problem, `[n]`, the mean over its traces, null where no coefficient is defined, by column.
    pub columns: BTreeMap<ColumnKey, Vec<Option<f64>>>,
}

impl Group {
    /// The columns of the model in a study of one problem set.
    pub fn of_study(run: &str, found: &DatasetFindings, window: usize) -> Self {
        let of_model = found.findings.iter().filter(|finding| finding.source == Source::Model);
        let column = |finding: &crate::study::findings::Finding| {
            let key = ColumnKey {
                signal: finding.signal.to_owned(),
                layer: finding.layer.map(|layer| layer as i16),
                smoothing: finding.smoother.name(window),
            };
            let z = finding.correlation.by_trace.iter().map(|rho| rho.as_ref().ok().map(|t| clipped_z(t.rho).0));
            (key, found.problems.means_of_defined(&z.collect::<Vec<_>>()))
        };
        Self { run: run.to_owned(), dataset: found.dataset.clone(), columns: of_model.map(column).collect() }
    }

    /// The columns of the model in the rows of another run, problem sets in order of their names.
    pub fn of_rows(run: &str, rows: &[CorrelationsByTrace]) -> Vec<Self> {
        // Problems stand in order of their names, whatever the order of the rows. Files of earlier versions do not name
        // them; there every trace stands for its own.
        let unit = |row: &CorrelationsByTrace| {
            (row.problem_id.clone(), row.problem_id.is_none().then(|| row.trace_id.clone()))
        };
        let mut groups: BTreeMap<&str, Self> = BTreeMap::new();
        let mut units: BTreeMap<&str, BTreeMap<_, usize>> = BTreeMap::new();
        for row in rows {
            units.entry(&row.dataset).or_default().insert(unit(row), 0);
            let empty = || Self { run: run.to_owned(), dataset: row.dataset.clone(), columns: <_>::default() };
            groups.entry(&row.dataset).or_insert_with(empty);
        }
        for own in units.values_mut() {
            own.values_mut().enumerate().for_each(|(at, place)| *place = at);
        }
        let mut sums: BTreeMap<(&str, ColumnKey), Vec<(f64, u32)>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.source == Source::Model.name()) {
            let own = &units[row.dataset.as_str()];
            let key = ColumnKey { signal: row.signal.clone(), layer: row.layer, smoothing: row.smoothing.clone() };
            let column = sums.entry((&row.dataset, key)).or_insert_with(|| vec![(0.0, 0); own.len()]);
            if let Some(rho) = row.rho {
                let (sum, n) = &mut column[own[&unit(row)]];
                (*sum, *n) = (*sum + clipped_z(rho).0, *n + 1);
            }
        }
        for ((dataset, key), column) in sums {
            let means = column.into_iter().map(|(sum, n)| (n > 0).then(|| sum / f64::from(n))).collect();
            if let Some(group) = groups.get_mut(dataset) {
                group.columns.insert(key, means);
            }
        }
        groups.into_values().collect()
    }

    /// `run, dataset`.
    pub fn name(&self) -> String {
        format!("{}, {}", self.run, self.dataset)
    }

    /// Layers of the step norm under a smoother.
    pub fn n_layers(&self, smoothing: &str) -> usize {
        self.layers(smoothing).len()
    }

    /// The step norm under a smoother, layer by layer.
    fn layers(&self, smoothing: &str) -> Vec<&Vec<Option<f64>>> {
        let is = |key: &&ColumnKey| key.signal == BAND_SIGNAL && key.layer.is_some() && key.smoothing == smoothing;
        self.columns.iter().filter(|(key, _)| is(key)).map(|(_, column)| column).collect()
    }

    /// The coefficients of the step norm, `[problems][layers]`, `None` for a problem that lacks one.
    pub fn by_problem(&self, smoothing: &str) -> Vec<Option<Vec<f64>>> {
        let layers = self.layers(smoothing);
        let n = layers.first().map_or(0, |column| column.len());
        (0..n).map(|problem| layers.iter().map(|column| column[problem]).collect()).collect()
    }

    /// Smoothers of the step norm, in order of their names.
    pub fn smoothings(&self) -> Vec<&str> {
        let of_steps = self.columns.keys().filter(|key| key.signal == BAND_SIGNAL && key.layer.is_some());
        let mut names: Vec<&str> = of_steps.map(|key| key.smoothing.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A group of problems whose coefficients over layers are given.
    pub(crate) fn group(run: &str, dataset: &str, traces: &[Vec<f64>]) -> Group {
        let n_layers = traces.first().map_or(0, Vec::len);
        let column = |layer: usize| {
            let key =
                ColumnKey { signal: BAND_SIGNAL.to_owned(), layer: Some(layer as i16), smoothing: "mean64".to_owned() };
            (key, traces.iter().map(|trace| Some(trace[layer])).collect())
        };
        Group { run: run.to_owned(), dataset: dataset.to_owned(), columns: (0..n_layers).map(column).collect() }
    }

    #[test]
    fn contrasts_by_hand() {
        let z = [0.4, 0.2, -0.1, -0.3];
        let of = |contrast: Contrast| contrast.of(&z).expect("four layers");
        // Bands are layers 0-1 and 2-3 of four; depths -1, -1/3, 1/3, 1.
        assert!((of(Contrast::BandA) - 0.3).abs() < 1e-15 && (of(Contrast::BandB) + 0.2).abs() < 1e-15);
        assert!((of(Contrast::ALessB) - 0.5).abs() < 1e-15);
        let trend = (-0.4 - 0.2 / 3.0 - 0.1 / 3.0 - 0.3) / (2.0 + 2.0 / 9.0);
        assert!((of(Contrast::Trend) - trend).abs() < 1e-15);
        assert_eq!((Contrast::Trend.of(&[0.1]), Contrast::BandA.of(&[])), (None, None));
    }

    #[test]
    fn rows_of_another_run_are_read_by_trace() {
        let row = |trace: &str, dataset: &str, layer: i16, rho: Option<f64>, source: &str| CorrelationsByTrace {
            trace_id: trace.to_owned(),
            problem_id: None,
            dataset: dataset.to_owned(),
            source: source.to_owned(),
            signal: "hs_l2".to_owned(),
            layer: Some(layer),
            smoothing: "mean64".to_owned(),
            n: 9,
            m: 3,
            rho,
            auc: None,
            rho_pos: None,
            lag1: None,
            rho_partial_pos: None,
            rho_stratified: None,
            reason: None,
        };
        let rows = [
            row("b", "x", 0, Some(0.5), "model"),
            row("a", "x", 1, Some(-0.5), "model"),
            row("a", "x", 0, None, "model"),
            row("b", "x", 1, Some(0.1), "model"),
            row("b", "x", 0, Some(0.9), "random_weights"),
            row("c", "y", 0, Some(0.2), "model"),
        ];
        let groups = Group::of_rows("other", &rows);
        assert_eq!(groups.iter().map(Group::name).collect::<Vec<_>>(), ["other, x", "other, y"]);
        let z = |rho: f64| clipped_z(rho).0;
        assert_eq!(groups[0].by_problem("mean64"), [None, Some(vec![z(0.5), z(0.1)])]);
        assert_eq!((groups[0].n_layers("mean64"), groups[0].smoothings()), (2, vec!["mean64"]));
        assert_eq!(groups[1].by_problem("mean64"), [Some(vec![z(0.2)])]);
        // Two samples of one problem are one unit.
        let same = |row: CorrelationsByTrace| CorrelationsByTrace { problem_id: Some("p".to_owned()), ..row };
        let rows = [row("a", "x", 0, Some(0.5), "model"), row("b", "x", 0, Some(0.1), "model")].map(same);
        let want = f64::midpoint(z(0.5), z(0.1));
        assert_eq!(Group::of_rows("other", &rows)[0].by_problem("mean64"), [Some(vec![want])]);
    }
}
