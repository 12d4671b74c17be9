//! Which score separates important tokens when tokens are evicted? The scores of policies, and all layers and pairs of
//! layers.
//!
//! The value of a score is the mean over problems of the mean over their traces of the AUC at decision time
//! ([`replay`]), with a bootstrap over problems. Candidates
//! of layers are made of `z_l`, the rolling z-score of `hs_l2` at layer `l`: `z_a`, `-z_b` and `z_a - z_b` for all pairs.
//! They are compared as **combined** scores: the layer with the largest |rho| of its own need not be part of the best pair.
//!
//! The best of a thousand candidates has a large AUC on the traces that it was chosen on. So problems are split into
//! [`FOLDS`] parts by their order, all traces of a problem in one part; for each part the best on the others is
//! measured on it, and the mean of these is the honest figure of choosing.

use epikv_signals::Smoother;
use epikv_stats::moments::mean;
use rayon::prelude::*;

use crate::beside::replay::{Limits, replay};
use crate::error::Result;
use crate::record::{Column, Recording};
use crate::study::bands::BAND_SIGNAL;
use crate::study::baseline::Baseline;
use crate::study::column::smooth;
use crate::study::pools::problems;
use crate::study::problems::Problems;
use crate::study::resamples::Resamples;
use crate::study::sample::Sample;
use crate::study::settings::Settings;

/// Parts of the nested split.
pub const FOLDS: usize = 5;

/// A score that is valued at decision time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// A recorded score.
    Score(&'static str),
    /// The same score through random weights.
    Random(&'static str),
    /// What needs no model.
    Baseline(&'static str),
    /// `z_a` of a layer.
    Plus(usize),
    /// `-z_b` of a layer.
    Minus(usize),
    /// `z_a - z_b`.
    Pair(usize, usize),
}

/// A candidate on one problem set.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected {
    /// The candidate.
    pub candidate: Candidate,
    /// Traces at which it has a value.
    pub n_traces: usize,
    /// Problems of these traces: the units.
    pub n_problems: usize,
    /// Mean over problems of the mean over their traces of the AUC at decision time; `None` without any.
    pub auc: Option<f64>,
    /// Interval by the bootstrap over problems; `None` where undefined.
    pub interval: Option<(f64, f64)>,
}

/// What choosing gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Picked {
    /// The best candidate on all traces.
    pub best: Candidate,
    /// Its AUC on the traces that it was chosen on.
    pub auc: f64,
    /// Mean over problems of the AUC of the best of the other parts; `None` below [`FOLDS`] problems.
    pub held_out: Option<f64>,
    /// The best of each split, in order.
    pub by_fold: Vec<Candidate>,
}

/// Labels of the tokens of a trace.
type Labels = Vec<Option<bool>>;

/// Values of a trace, layer by layer.
type Layers = Vec<Vec<Option<f32>>>;

/// AUC of each trace or problem, `[n]`, by candidate.
type Values = Vec<(Candidate, Vec<Option<f64>>)>;

/// The series of a signal of that name.
type SeriesOf = fn(&Sample, &str) -> Option<Vec<Option<f32>>>;

/// Values the recorded scores of the samples of one problem set, the same through random weights, and the baselines; `limits`
/// has one entry a sample.
pub fn scores(samples: &[&Sample], limits: &[Limits], settings: &Settings) -> Vec<Selected> {
    let names = |of: fn(&Sample) -> Option<&Recording>| -> Vec<&'static str> {
        let first = samples.first().and_then(|sample| of(sample));
        first.map_or_else(Vec::new, |r| r.columns.iter().filter(|c| c.layer.is_none()).map(|c| c.signal).collect())
    };
    let of_model: SeriesOf = |sample, name| column(&sample.recording, name);
    let of_random: SeriesOf = |sample, name| column(sample.random.as_ref()?, name);
    let value = |name: &'static str, of: SeriesOf| {
        let of_sample = |(sample, limits): (&&Sample, &Limits)| valued(&of(sample, name)?, sample, *limits);
        samples.iter().zip(limits).map(of_sample).collect::<Vec<_>>()
    };
    let mut candidates: Values =
        names(|s| Some(&s.recording)).par_iter().map(|n| (Candidate::Score(n), value(n, of_model))).collect();
    let random: Values =
        names(|s| s.random.as_ref()).par_iter().map(|n| (Candidate::Random(n), value(n, of_random))).collect();
    candidates.extend(random);
    for baseline in Baseline::ALL {
        let columns = baseline.series(samples);
        let of = |((sample, limits), column): ((&&Sample, &Limits), &Vec<Option<f32>>)| valued(column, sample, *limits);
        let values = samples.iter().zip(limits).zip(&columns).map(of).collect();
        candidates.push((Candidate::Baseline(baseline.name()), values));
    }
    summaries(&candidates, &problems(samples), settings)
}

/// The series of a signal that has no layers.
fn column(recording: &Recording, name: &str) -> Option<Vec<Option<f32>>> {
    recording.columns.iter().find(|c| c.layer.is_none() && c.signal == name).map(|c| c.values.clone())
}

/// The AUC at decision time of a series; `None` where it is undefined throughout.
fn valued(series: &[Option<f32>], sample: &Sample, limits: Limits) -> Option<f64> {
    let is_known = series.iter().any(Option::is_some);
    if is_known { replay(series, &labels(sample), limits).map(|found| found.auc) } else { None }
}

/// Values all layers and pairs, and chooses. `None` without recorded steps or without any value.
///
/// # Errors
/// If the window of the smoothers is empty.
pub fn pick(samples: &[&Sample], limits: &[Limits], settings: &Settings) -> Result<Option<(Vec<Selected>, Picked)>> {
    let scored = samples.iter().map(|sample| z_scores(sample, settings)).collect::<Result<Vec<_>>>()?;
    let n_layers = scored.iter().map(Vec::len).min().unwrap_or(0);
    let mut candidates: Vec<Candidate> = Vec::new();
    candidates.extend((0..n_layers).flat_map(|l| [Candidate::Plus(l), Candidate::Minus(l)]));
    candidates
        .extend((0..n_layers).flat_map(|a| (0..n_layers).filter(move |&b| a != b).map(move |b| Candidate::Pair(a, b))));
    let labels: Vec<Vec<Option<bool>>> = samples.iter().map(|sample| labels(sample)).collect();
    let of = |candidate: &Candidate| {
        let value = |((layers, labels), limits): ((&Layers, &Labels), &Limits)| {
            replay(&combined(layers, *candidate), labels, *limits).map(|found| found.auc)
        };
        (*candidate, scored.iter().zip(&labels).zip(limits).map(value).collect())
    };
    let values: Values = candidates.par_iter().map(of).collect();
    let problems = problems(samples);
    let of_problems: Values =
        values.iter().map(|(candidate, by_trace)| (*candidate, problems.means_of_defined(by_trace))).collect();
    let Some(picked) = choose(&of_problems, &folds(problems.len())) else { return Ok(None) };
    Ok(Some((summaries(&values, &problems, settings), picked)))
}

/// The label of each token of a trace, null where it does not count.
fn labels(sample: &Sample) -> Vec<Option<bool>> {
    let mut labels = vec![None; sample.recording.token_ids.len()];
    for &(pos, important) in sample.mask.tokens() {
        labels[pos] = Some(important);
    }
    labels
}

/// The rolling z-score of the step at each layer.
fn z_scores(sample: &Sample, settings: &Settings) -> Result<Vec<Vec<Option<f32>>>> {
    let of_layers = sample.recording.columns.iter().filter(|c| c.signal == BAND_SIGNAL && c.layer.is_some());
    let z = |column: &Column| {
        let smoothed = smooth(&column.values, sample.recording.n_prompt, Smoother::Z, settings)?;
        Ok(smoothed.into_owned())
    };
    of_layers.map(z).collect()
}

fn combined(layers: &[Vec<Option<f32>>], candidate: Candidate) -> Vec<Option<f32>> {
    match candidate {
        Candidate::Score(_) | Candidate::Random(_) | Candidate::Baseline(_) => Vec::new(),
        Candidate::Plus(a) => layers[a].clone(),
        Candidate::Minus(b) => layers[b].iter().map(|z| z.map(|z| -z)).collect(),
        Candidate::Pair(a, b) => layers[a].iter().zip(&layers[b]).map(|(a, b)| Some((*a)? - (*b)?)).collect(),
    }
}

fn summaries(values: &Values, problems: &Problems, settings: &Settings) -> Vec<Selected> {
    let resamples = Resamples::new(settings.seed, settings.replicates.min(MAX_REPLICATES));
    let of = |(candidate, by_trace): &(Candidate, Vec<Option<f64>>)| {
        let defined: Vec<f64> = problems.means_of_defined(by_trace).into_iter().flatten().collect();
        let n_traces = by_trace.iter().flatten().count();
        let auc = mean(&defined);
        let draws = resamples.draws_of_mean(&defined);
        let interval = auc.and_then(|auc| draws.interval(auc, settings.confidence));
        Selected { candidate: *candidate, n_traces, n_problems: defined.len(), auc, interval }
    };
    values.par_iter().map(of).collect()
}

/// Replicates for a candidate at most: there are a thousand candidates, and means need few.
const MAX_REPLICATES: usize = 1000;

/// The part that each problem belongs to: in turn, in the order in which they first come.
fn folds(n_problems: usize) -> Vec<usize> {
    (0..n_problems).map(|problem| problem % FOLDS).collect()
}

/// The best candidate, and what choosing gives on problems that had no part in it; `folds` has the part of each problem,
/// and `values` one value a problem.
fn choose(values: &Values, folds: &[usize]) -> Option<Picked> {
    let (best, auc) = best(values, |_| true)?;
    let n_folds = folds.iter().max().map_or(0, |last| last + 1);
    let (mut held_out, mut by_fold) = (Vec::new(), Vec::new());
    for fold in 0..if n_folds < FOLDS { 0 } else { FOLDS } {
        let Some((chosen, _)) = self::best(values, |problem| folds[problem] != fold) else { continue };
        by_fold.push(chosen);
        let of_chosen = values.iter().find(|(candidate, _)| *candidate == chosen).map(|(_, by_trace)| by_trace);
        let own = of_chosen.into_iter().flat_map(|all| all.iter().zip(folds).filter(|(_, f)| **f == fold));
        held_out.extend(own.filter_map(|(auc, _)| *auc));
    }
    Some(Picked { best, auc, held_out: mean(&held_out), by_fold })
}

/// The candidate with the largest mean over the problems that count; of equal ones the first.
fn best(values: &Values, counts: impl Fn(usize) -> bool) -> Option<(Candidate, f64)> {
    let of = |(candidate, by_trace): &(Candidate, Vec<Option<f64>>)| {
        let counted = by_trace.iter().enumerate().filter(|(problem, _)| counts(*problem));
        let auc = mean(&counted.filter_map(|(_, auc)| *auc).collect::<Vec<_>>())?;
        Some((*candidate, auc))
    };
    values.iter().filter_map(of).reduce(|best, next| if next.1 > best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(all: &[(Candidate, [f64; 6])]) -> Values {
        all.iter().map(|(candidate, aucs)| (*candidate, aucs.map(Some).to_vec())).collect()
    }

    #[test]
    fn a_choice_is_judged_on_other_traces() {
        // Pair (0, 1) is good everywhere; layer 2 is perfect on the first trace alone.
        let pair = (Candidate::Pair(0, 1), [0.6; 6]);
        let lucky = (Candidate::Plus(2), [1.0, 0.5, 0.5, 0.5, 0.5, 0.5]);
        let picked = choose(&values(&[pair, lucky]), &[0, 1, 2, 3, 4, 0]).expect("values");
        assert_eq!((picked.best, picked.auc), (Candidate::Pair(0, 1), 0.6));
        assert!((picked.held_out.expect("six traces") - 0.6).abs() < 1e-15);
        assert_eq!(picked.by_fold, [Candidate::Pair(0, 1); 5]);
        assert_eq!(choose(&values(&[pair]), &[0, 1, 2]).expect("values").held_out, None);
        assert_eq!(choose(&Vec::new(), &[]), None);
    }

    #[test]
    fn layers_are_combined_before_they_are_valued() {
        let layers = vec![vec![Some(3.0), None], vec![Some(1.0), Some(2.0)]];
        assert_eq!(combined(&layers, Candidate::Pair(0, 1)), [Some(2.0), None]);
        assert_eq!(combined(&layers, Candidate::Minus(1)), [Some(-1.0), Some(-2.0)]);
        assert_eq!(combined(&layers, Candidate::Plus(0)), layers[0]);
    }
}
