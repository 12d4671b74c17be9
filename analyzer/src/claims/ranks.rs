//! Figures of signals: how they rank the labels, the positions, and each other.
//!
//! The unit is the problem: coefficients of its traces are averaged in Fisher's z, and Student's t is taken over problems.

use std::collections::BTreeMap;

use epikv_schemas::CorrelationsByTrace;
use epikv_signals::map_layer;
use epikv_stats::moments::mean;
use epikv_stats::pool::clipped_z;
use serde::{Deserialize, Serialize};

use crate::claims::part::{ByProblem, Part, Scale, Test};
use crate::claims::run::Run;
use crate::study::bands::{Band, span};

/// Layers of a signal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layers {
    /// The signal without a layer, or its mean over layers.
    #[default]
    None,
    /// Each layer.
    Each,
    /// Each layer of band A.
    BandA,
    /// Each layer of band B.
    BandB,
    /// Each layer of both bands.
    Bands,
    /// Each layer before those of band A.
    Early,
    /// The last layer.
    Last,
}

impl Layers {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "without layers",
            Self::Each => "at each layer",
            Self::BandA => "at each layer of band A",
            Self::BandB => "at each layer of band B",
            Self::Bands => "at each layer of both bands",
            Self::Early => "at each layer before band A",
            Self::Last => "at the last layer",
        }
    }

    /// Whether a layer of `n_layers` is among them.
    fn include(self, layer: Option<i16>, n_layers: usize) -> bool {
        let Some(layer) = layer.and_then(|layer| usize::try_from(layer).ok()) else { return self == Self::None };
        let [a, b] = Band::both(n_layers).map(|band| band.layers);
        match self {
            Self::None => false,
            Self::Each => true,
            Self::BandA => a.contains(&layer),
            Self::BandB => b.contains(&layer),
            Self::Bands => a.contains(&layer) || b.contains(&layer),
            Self::Early => layer < *a.start(),
            Self::Last => layer == map_layer(epikv_signals::REFERENCE_LAYERS - 1, n_layers),
        }
    }
}

/// What a signal is ranked against.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// The labels.
    #[default]
    Labels,
    /// The position in the trace.
    Position,
}

/// A signal, smoothed and ranked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ranked {
    /// Signal; `*` is each signal of the model.
    pub signal: String,
    /// Smoother.
    pub smoothing: String,
    /// What it is ranked against.
    #[serde(default)]
    pub against: Against,
}

impl Ranked {
    /// In words.
    pub fn words(&self) -> String {
        let signal = if self.signal == "*" { "each signal" } else { &self.signal };
        let against = if self.against == Against::Position { " (with the position)" } else { "" };
        format!("{signal}, {}{against}", self.smoothing)
    }

    /// Fisher's z by problem of each signal and layer of a problem set.
    fn of<'r>(&self, run: &'r Run) -> Ranks<'r> {
        let mut ranks = Ranks::new();
        let is_meant = |row: &&CorrelationsByTrace| {
            let model = row.source == "model" || (row.source == "none" && self.signal != "*");
            model && row.smoothing == self.smoothing && ["*", row.signal.as_str()].contains(&self.signal.as_str())
        };
        for row in run.by_trace.iter().filter(is_meant) {
            let rho = if self.against == Against::Position { row.rho_pos } else { row.rho };
            if let Some(rho) = rho {
                let problems = ranks.entry((&row.dataset, &row.signal, row.layer)).or_default();
                let problem = row.problem_id.as_deref().unwrap_or(&row.trace_id);
                problems.entry(problem).or_default().push(clipped_z(rho).0);
            }
        }
        ranks
    }
}

/// Fisher's z by problem, by problem set, signal and layer.
type Ranks<'r> = BTreeMap<Key<'r>, ByProblem<'r>>;

/// Problem set, signal and layer.
type Key<'r> = (&'r str, &'r str, Option<i16>);

/// Layers of the model of a run.
fn n_layers(run: &Run) -> usize {
    run.by_trace.iter().filter_map(|row| row.layer).max().map_or(0, |last| usize::try_from(last).unwrap_or(0) + 1)
}

/// A signal and layer in words.
fn named(signal: &str, layer: Option<i16>) -> String {
    layer
        .and_then(|layer| usize::try_from(layer).ok())
        .map_or_else(|| signal.to_owned(), |layer| format!("{signal} layer {}", span(&(layer..=layer))))
}

/// Rho within traces of a signal, a part for each problem set and layer.
pub(crate) fn rho(run: &Run, ranked: &Ranked, layers: Layers) -> Vec<Part> {
    let n_layers = n_layers(run);
    let part = |((dataset, signal, layer), problems): (Key<'_>, ByProblem<'_>)| {
        let included = layers.include(layer, n_layers);
        included.then(|| Part::of_problems(dataset, named(signal, layer), Scale::Fisher, &problems)).flatten()
    };
    ranked.of(run).into_iter().filter_map(part).collect()
}

/// `|z|` of one column less that of another, problem by problem. Each column has the sign of its own mean, so that a
/// coefficient which is noise about 0 is not counted as strength. Columns are paired by layer, and by signal where the
/// first is each signal; a second one without a layer is paired with each of the first.
pub(crate) fn difference<'r>(run: &'r Run, a: &Ranked, b: &Ranked, layers: Layers) -> Vec<Part> {
    let n_layers = n_layers(run);
    let (first, second) = (a.of(run), b.of(run));
    let means = |problems: &ByProblem<'r>| -> BTreeMap<&'r str, f64> {
        problems.iter().filter_map(|(problem, z)| Some((*problem, mean(z)?))).collect()
    };
    let sign = |z: &BTreeMap<&str, f64>| z.values().sum::<f64>().signum();
    let part = |((dataset, signal, layer), problems): (&Key<'r>, &ByProblem<'r>)| {
        if !layers.include(*layer, n_layers) && a.signal != "*" {
            return None;
        }
        let other = if b.signal == "*" { *signal } else { b.signal.as_str() };
        let others = second.get(&(*dataset, other, *layer)).or_else(|| second.get(&(*dataset, other, None)))?;
        let (own, others) = (means(problems), means(others));
        let pairs = own.iter().filter_map(|(problem, z)| Some((z, others.get(problem)?)));
        let differences: Vec<f64> = pairs.map(|(z, other)| sign(&own) * z - sign(&others) * other).collect();
        Part::of_mean(dataset, named(signal, *layer), Scale::Plain, &differences)
    };
    first.iter().filter_map(part).collect()
}

/// Rho of band B with the labels, given the surprisal.
pub(crate) fn given_surprisal(run: &Run) -> Vec<Part> {
    let part = |row: &epikv_schemas::BandSurprisal| {
        let estimate = row.rho_given?;
        let n = usize::try_from(row.n_problems?).ok()?;
        let part = Part::of_interval(&row.dataset, estimate, row.given_lo.zip(row.given_hi)?, Test::Width, n);
        Some(Part { counts: format!("without it {:+.3}", row.rho?), ..part })
    };
    run.surprisal.iter().filter_map(part).collect()
}

/// Rho over problems of the slope of `hs_l2` over the layers with the difficulty.
pub(crate) fn trend(run: &Run) -> Vec<Part> {
    let part = |row: &epikv_schemas::DifficultyRow| {
        let n = usize::try_from(row.n_problems?).ok()?;
        let bounds = row.boot_lo.zip(row.boot_hi)?;
        Some(Part::of_interval(&row.dataset, row.statistic?, bounds, Test::Exact { p: row.p? }, n))
    };
    let is_mean = |row: &&epikv_schemas::DifficultyRow| row.smoothing == "mean64" && row.unit == "trend";
    run.difficulty.iter().filter(is_mean).filter_map(part).collect()
}

/// Spearman's rho between two signals over the tokens of a trace, a part for each problem set.
pub(crate) fn agreement(run: &Run, a: &str, b: &str) -> Vec<Part> {
    // A row for each budget has the same coefficient.
    let mut traces: BTreeMap<&str, f64> = BTreeMap::new();
    for row in &run.agreement {
        let is = [(a, b), (b, a)].contains(&(row.score_a.as_str(), row.score_b.as_str()));
        if let Some(rho) = row.spearman.filter(|_| is) {
            traces.insert(&row.trace_id, clipped_z(rho).0);
        }
    }
    let part = |(dataset, problems)| Part::of_problems(dataset, String::new(), Scale::Fisher, &problems);
    run.by_problem(traces).into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rho of a signal on problem `i` at each layer.
    fn rows(
        signal: &str,
        smoothing: &str,
        layers: usize,
        rho: impl Fn(usize, usize) -> f64,
    ) -> Vec<CorrelationsByTrace> {
        let row = |(layer, i): (usize, usize)| CorrelationsByTrace {
            trace_id: format!("t{i}"),
            problem_id: Some(format!("p{i}")),
            dataset: "tiny".to_owned(),
            source: "model".to_owned(),
            signal: signal.to_owned(),
            layer: (layers > 0).then(|| i16::try_from(layer).expect("few")),
            smoothing: smoothing.to_owned(),
            rho: Some(rho(layer, i)),
            rho_pos: Some(0.5),
            ..CorrelationsByTrace::default()
        };
        (0..layers.max(1)).flat_map(|layer| (0..8).map(move |i| (layer, i))).map(row).collect()
    }

    fn ranked(signal: &str, smoothing: &str) -> Ranked {
        Ranked { signal: signal.to_owned(), smoothing: smoothing.to_owned(), against: Against::Labels }
    }

    #[test]
    fn rho_is_over_problems_at_the_layers_asked_for() {
        let wave = |layer: usize, i: usize| if layer < 16 { 0.2 } else { -0.2 } + 0.01 * i as f64;
        let run = Run { by_trace: rows("hs_l2", "mean64", 32, wave), ..Run::default() };
        let of = |layers| rho(&run, &ranked("hs_l2", "mean64"), layers);
        assert_eq!(
            [Layers::BandA, Layers::BandB, Layers::Each, Layers::Last].map(|layers| of(layers).len()),
            [7, 8, 32, 1]
        );
        assert!(of(Layers::BandA).iter().all(|part| part.lo > 0.0 && part.n == 8));
        assert!(of(Layers::BandB).iter().all(|part| part.hi < 0.0));
        assert_eq!(of(Layers::BandA)[0].of, "hs_l2 layer 7");
    }

    #[test]
    fn strength_is_compared_problem_by_problem() {
        let strong = rows("hs_l2", "raw", 4, |layer, i| -0.4 - 0.01 * (i + layer) as f64);
        let weak = rows("hs_cos", "raw", 4, |_, i| 0.1 + 0.002 * i as f64);
        let attention = rows("h2o_attn", "raw", 0, |_, i| 0.2 + 0.01 * i as f64);
        let run = Run { by_trace: [strong, weak, attention].concat(), ..Run::default() };
        let of = |a: &str, b: &str| difference(&run, &ranked(a, "raw"), &ranked(b, "raw"), Layers::Each);
        let parts = of("hs_l2", "hs_cos");
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|part| part.lo > 0.2 && part.hi < 0.45), "{parts:?}");
        assert_eq!(of("hs_l2", "h2o_attn").len(), 4);
        assert!(of("hs_l2", "none").is_empty());
    }
}
