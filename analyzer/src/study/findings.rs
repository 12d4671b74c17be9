//! Findings of a study: a column against the labels, and all columns of a problem set.

use epikv_signals::Smoother;
use epikv_stats::moments::mean;
use epikv_stats::partial::partial_rho_of_ranks;
use epikv_stats::spearman::spearman_of_ranks;
use epikv_stats::stratified::binned_rho;
use epikv_stats::trend::lag1_autocorrelation;
use epikv_stats::{Midranks, SignalOrder};

use crate::study::correlate::Correlation;
use crate::study::join::Labelled;
use crate::study::lags::LagRho;
use crate::study::problems::Problems;

epikv_words::words! {
    /// What a correlated signal is computed from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Source {
        /// The model's.
        Model = "model",
        /// Those of random weights of the same shape: what survives says nothing about what the model has learnt.
        RandomWeights = "random_weights",
        /// No model's.
        None = "none",
    }
}

/// How the signal runs along one trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceShape {
    /// Labelled tokens with a value.
    pub n: usize,
    /// Important ones among them.
    pub n_important: usize,
    /// Mean value; `None` without any.
    pub mean: Option<f64>,
    /// Spearman's rho with the position; `None` where undefined.
    pub rho_position: Option<f64>,
    /// Lag-1 autocorrelation; `None` where undefined.
    pub lag1: Option<f64>,
    /// Rho with the label given the position; `None` below 8 tokens.
    pub rho_partial: Option<f64>,
    /// Rho with the label within tenths of the trace; `None` where undefined.
    pub rho_stratified: Option<f64>,
}

/// Tokens that a partial coefficient needs.
const MIN_PARTIAL: usize = 8;

/// Parts of a trace in which tokens are compared for the stratified coefficient.
const STRATA: usize = 10;

impl TraceShape {
    /// A trace of an arbitrary shape.
    pub(crate) fn unknown(trace: &Labelled) -> Self {
        let n_important = trace.important().iter().filter(|&&one| one).count();
        let n = trace.signal().len();
        let mean = mean(&trace.signal().iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
        Self { n, n_important, mean, rho_position: None, lag1: None, rho_partial: None, rho_stratified: None }
    }

    /// Of the labelled tokens of a trace, in order of positions, and sorted.
    pub(crate) fn of(trace: &Labelled, sorted: Option<&SignalOrder>) -> Self {
        let (signal, important) = (trace.signal(), trace.important());
        let n = signal.len();
        let wide: Vec<f64> = signal.iter().map(|&v| f64::from(v)).collect();
        let (label, position) = (Midranks::of_labels(important), Midranks::ascending(n));
        let long = sorted.filter(|_| n >= MIN_PARTIAL);
        Self {
            n,
            n_important: important.iter().filter(|&&one| one).count(),
            mean: mean(&wide),
            rho_position: sorted.and_then(|sorted| spearman_of_ranks(sorted.ranks(), &position)),
            lag1: lag1_autocorrelation(&wide),
            rho_partial: long.and_then(|sorted| partial_rho_of_ranks(sorted.ranks(), &label, &position)),
            rho_stratified: long.and_then(|sorted| binned_rho(sorted, important, STRATA)),
        }
    }
}

/// One column against the labels of one problem set.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What they are computed from.
    pub source: Source,
    /// Signal or baseline.
    pub signal: &'static str,
    /// Its layer, 0-based; `None` for a signal without layers.
    pub layer: Option<usize>,
    /// How it was smoothed.
    pub smoother: Smoother,
    /// The figures over tokens.
    pub correlation: Correlation,
    /// The figures over occluded windows; `None` without labels of windows.
    pub windows: Option<Correlation>,
    /// One a trace, in the order of the problem set.
    pub shapes: Vec<TraceShape>,
    /// Rho at other lags; empty for what is not the model's.
    pub lags: Vec<LagRho>,
}

/// All columns of one problem set.
#[derive(Debug, Clone)]
pub struct DatasetFindings {
    /// The problem set.
    pub dataset: String,
    /// Whether it joins other problem sets, which are there too.
    pub is_pooled: bool,
    /// Its traces.
    pub trace_ids: Vec<String>,
    /// The problem of each trace.
    pub problem_ids: Vec<String>,
    /// The same as numbers: the units that are counted.
    pub problems: Problems,
    /// Its columns: by source, signal, layer and smoother, baselines last.
    pub findings: Vec<Finding>,
}

impl DatasetFindings {
    /// The column of a signal at a layer.
    pub fn find(&self, source: Source, signal: &str, layer: Option<usize>, smoother: Smoother) -> Option<&Finding> {
        let is = |f: &&Finding| f.source == source && f.signal == signal && f.layer == layer && f.smoother == smoother;
        self.findings.iter().find(is)
    }
}
