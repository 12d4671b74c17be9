//! One signal against the labels, over many traces.
//!
//! Two figures, always both:
//!
//! - **pooled**: rho and AUC over all tokens of all usable traces at once. It mixes level shifts between traces with
//!   ranking inside them. Its interval is a Fisher form with `n` = usable problems: a convention, not a sampling theory.
//! - **within**: one coefficient a trace, pooled as `tanh` of the mean over problems of the mean over their traces of
//!   `atanh(rho_i)`; the interval is Student's t over the means of the problems, so that it contains the variance between
//!   them. Its AUC is the plain mean, over the samples of a problem and then over problems.
//!
//! The unit is the problem ([`Problems`]): samples of one problem are not independent. Both have a bootstrap over problems
//! ([`Resamples`]) and a test against labels that cannot know the signal ([`Tested`]) besides.
//! What pooling adds to ranking inside traces is a third figure, **between**: rho over problems of the mean signal with the
//! share of important tokens, both averaged over the samples. Its units are independent, so that its Fisher interval is one.
//!
//! A trace is usable if its own coefficient is defined. The others are left out of both figures and counted by reason, so
//! that both speak of the same tokens.

use epikv_stats::pool::{PoolWeight, PooledRho, clipped_z, pool_fisher};
use epikv_stats::quantile::median;
use epikv_stats::{BinaryRanks, Confidence, FisherMethod, RankScratch, fisher_interval, spearman};

use crate::study::join::Labelled;
use crate::study::problems::Problems;
use crate::study::resamples::{Draws, Pool, Resamples};
use crate::study::tested::{self, Tested};
use crate::study::trace_rho::{TraceRho, Undefined};

/// Which intervals are computed.
#[derive(Debug, Clone, Copy)]
pub struct Intervals<'r> {
    /// Level of all of them.
    pub confidence: Confidence,
    /// Form of the pooled interval on usable problems.
    pub fisher: FisherMethod,
    /// Replicates of the bootstrap over problems; their seed also draws the surrogates.
    pub resamples: &'r Resamples,
    /// Replicates of the tests against other labels.
    pub n_surrogates: usize,
}

/// A coefficient with its intervals. Undefined parts are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figure {
    /// Spearman's rho against the binary label; with ties in the label it cannot reach 1.
    pub rho: Option<f64>,
    /// Chance that an important token has the higher value.
    pub auc: Option<f64>,
    /// Lower bound of rho.
    pub ci_lo: Option<f64>,
    /// Upper bound of rho.
    pub ci_hi: Option<f64>,
    /// Lower bound of rho by the bootstrap over problems.
    pub boot_lo: Option<f64>,
    /// Upper bound of rho by the bootstrap over problems.
    pub boot_hi: Option<f64>,
    /// Replicates of rho; may be forgotten once their interval is made.
    pub draws: Draws,
    /// Replicates in which rho is defined.
    pub n_draws: usize,
    /// The largest change of rho when one problem is left out.
    pub leverage: Option<f64>,
    /// Rho beside what other labels give.
    pub tested: Tested,
}

impl Figure {
    /// `2 auc - 1`.
    pub fn rank_biserial(&self) -> Option<f64> {
        self.auc.map(|auc| 2.0 * auc - 1.0)
    }

    /// Adds the replicates and the interval that follows from them.
    fn with_draws(self, draws: Draws, confidence: Confidence) -> Self {
        let interval = self.rho.and_then(|rho| draws.interval(rho, confidence));
        let n_draws = draws.n_defined();
        let changes = draws.jackknife.iter().flatten().filter_map(|without| Some((self.rho? - without).abs()));
        let leverage = changes.reduce(f64::max);
        Self { boot_lo: interval.map(|i| i.0), boot_hi: interval.map(|i| i.1), draws, n_draws, leverage, ..self }
    }
}

impl Correlation {
    /// Gives back the memory of the replicates.
    pub(crate) fn forget_draws(&mut self) {
        (self.pooled.draws, self.within.draws) = <_>::default();
    }
}

/// A signal against the labels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Correlation {
    /// Tokens of usable traces.
    pub n_tokens: u64,
    /// Traces that were given.
    pub n_traces: usize,
    /// Usable traces.
    pub n_usable: usize,
    /// Problems of usable traces: the independent units.
    pub n_eff: usize,
    /// Traces left out for too few tokens.
    pub n_short: usize,
    /// Traces left out because all their tokens are important, or none is.
    pub n_constant_label: usize,
    /// Traces left out because the signal is constant.
    pub n_constant_signal: usize,
    /// Labelled tokens left out because the signal is undefined there.
    pub n_undefined: usize,
    /// Share of important tokens among those of usable traces; `None` without any.
    pub base_rate: Option<f64>,
    /// All tokens at once.
    pub pooled: Figure,
    /// Trace by trace.
    pub within: Figure,
    /// Problem by problem under random effects: tokens (their mean over the samples) and a variance between problems as
    /// weights.
    pub random_effects: Option<PooledRho>,
    /// Means of problems against their shares of important tokens.
    pub between: Figure,
    /// Problems with a labelled token, which `between` counts.
    pub n_between: usize,
    /// Median of the coefficients of the traces.
    pub rho_median_trace: Option<f64>,
    /// Share of problems whose mean coefficient, in Fisher's z, is positive.
    pub share_positive: Option<f64>,
    /// Traces whose coefficient was clipped before Fisher's z.
    pub k_clipped: usize,
    /// The coefficient of each trace given, in their order; null where undefined.
    pub by_trace: Vec<Result<TraceRho, Undefined>>,
}

/// Correlates one signal with the labels of many traces, each of a problem of its own.
///
/// Cost `O(n log n)` in the tokens; a replicate of the bootstrap costs `O(min(n, k^2))` for `k` usable traces.
pub fn correlate(traces: &[Labelled], intervals: &Intervals<'_>) -> Correlation {
    correlate_problems(traces, &Problems::each(traces.len()), intervals)
}

/// The same where several traces can be samples of one problem.
///
/// # Panics
/// If there is not one problem a trace.
pub fn correlate_problems(traces: &[Labelled], problems: &Problems, intervals: &Intervals<'_>) -> Correlation {
    let mut scratch = RankScratch::default();
    let by_trace = traces.iter().map(|trace| TraceRho::of(trace, &mut scratch)).collect();
    correlate_given(traces, problems, by_trace, intervals)
}

/// The same with the coefficients of the traces at hand.
pub(crate) fn correlate_given(
    traces: &[Labelled],
    problems: &Problems,
    by_trace: Vec<Result<TraceRho, Undefined>>,
    intervals: &Intervals<'_>,
) -> Correlation {
    assert_eq!(problems.of_traces().len(), traces.len(), "one problem a trace");
    let all_problems = problems;
    let problems = problems.only(|trace| by_trace[trace].is_ok());
    let usable: Vec<&Labelled> = traces.iter().zip(&by_trace).filter(|(_, rho)| rho.is_ok()).map(|(t, _)| t).collect();
    let rhos: Vec<f64> = by_trace.iter().flatten().map(|t| t.rho).collect();
    let left_out = |reason| by_trace.iter().filter(|rho| rho.err() == Some(reason)).count();
    let (ranks, mut pooled) = pooled(&usable, &problems, intervals);
    let of_problems = OfProblems::new(&by_trace, &problems);
    let mut within = within(&of_problems, intervals);
    [pooled.tested, within.tested] =
        tested::test(&usable, &problems, intervals.n_surrogates, intervals.resamples.seed());
    let (n_between, between) = between(traces, all_problems, intervals);
    Correlation {
        n_tokens: ranks.n,
        n_traces: traces.len(),
        n_usable: usable.len(),
        n_eff: problems.len(),
        n_short: left_out(Undefined::Short),
        n_constant_label: left_out(Undefined::ConstantLabel),
        n_constant_signal: left_out(Undefined::ConstantSignal),
        n_undefined: traces.iter().map(Labelled::n_undefined).sum(),
        base_rate: ranks.base_rate(),
        pooled,
        within,
        random_effects: of_problems.pooled(PoolWeight::RandomEffects, intervals.confidence),
        between,
        n_between,
        rho_median_trace: median(&rhos),
        share_positive: of_problems.share_positive(),
        k_clipped: rhos.iter().filter(|&&r| clipped_z(r).1).count(),
        by_trace,
    }
}

fn pooled(usable: &[&Labelled], problems: &Problems, intervals: &Intervals<'_>) -> (BinaryRanks, Figure) {
    let resamples = intervals.resamples;
    let pool = if resamples.has_any(problems.len()) { Pool::new(usable) } else { None };
    let ranks = match &pool {
        Some(pool) => Some(pool.ranks(&vec![1; usable.len()])),
        None => together(usable),
    };
    let Some(ranks) = ranks else { return <_>::default() };
    let fisher = |rho| fisher_interval(rho, problems.len() as u64, intervals.confidence, intervals.fisher);
    let interval = ranks.rho().map(fisher);
    let figure = Figure {
        rho: ranks.rho(),
        auc: ranks.auc(),
        ci_lo: interval.and_then(|ci| ci.lo),
        ci_hi: interval.and_then(|ci| ci.hi),
        ..Figure::default()
    };
    let draws = pool.map(|pool| resamples.draws(problems.len(), |counts| pool.ranks(&problems.expand(counts)).rho()));
    (ranks, figure.with_draws(draws.unwrap_or_default(), intervals.confidence))
}

/// The ranks of all tokens, once: a third of the work of [`Pool`], where nothing is resampled.
fn together(traces: &[&Labelled]) -> Option<BinaryRanks> {
    let signal = traces.iter().map(|trace| trace.signal()).collect::<Vec<_>>().concat();
    let important = traces.iter().map(|trace| trace.important()).collect::<Vec<_>>().concat();
    BinaryRanks::from_f32(&signal, &important, &mut RankScratch::default())
}

/// Rho over problems, and how many there are.
fn between(traces: &[Labelled], problems: &Problems, intervals: &Intervals<'_>) -> (usize, Figure) {
    let level = |trace: &Labelled| {
        let (signal, important) = (trace.signal(), trace.important());
        let (sum, n) = (signal.iter().map(|&x| f64::from(x)).sum::<f64>(), signal.len() as f64);
        let n_important = important.iter().filter(|&&one| one).count() as f64;
        (n > 0.0).then(|| (sum / n, n_important / n))
    };
    let levels: Vec<Option<(f64, f64)>> = traces.iter().map(level).collect();
    let problems = problems.only(|trace| levels[trace].is_some());
    let (signal, share): (Vec<f64>, Vec<f64>) = levels.into_iter().flatten().unzip();
    let (signal, share) = (problems.means(&signal), problems.means(&share));
    let rho = spearman(&signal, &share);
    let interval = rho.map(|rho| fisher_interval(rho, signal.len() as u64, intervals.confidence, intervals.fisher));
    let (ci_lo, ci_hi) = (interval.and_then(|ci| ci.lo), interval.and_then(|ci| ci.hi));
    (signal.len(), Figure { rho, ci_lo, ci_hi, ..Figure::default() })
}

/// The coefficients of problems, `[problems]`.
struct OfProblems {
    rhos: Vec<f64>,
    z: Vec<f64>,
    aucs: Vec<f64>,
    /// Tokens of a sample, on average.
    lengths: Vec<u64>,
}

impl OfProblems {
    /// `problems` are those of the traces that have a coefficient.
    fn new(by_trace: &[Result<TraceRho, Undefined>], problems: &Problems) -> Self {
        let means = |of: fn(&TraceRho) -> f64| problems.means(&by_trace.iter().flatten().map(of).collect::<Vec<f64>>());
        let z = means(|t| clipped_z(t.rho).0);
        // A single sample keeps its coefficient to the last bit, which `tanh` of its z need not give back.
        let alone = problems.len() == problems.of_traces().len();
        let rhos = if alone { means(|t| t.rho) } else { z.iter().map(|z| z.tanh()).collect() };
        let lengths = means(|t| t.n_tokens as f64).into_iter().map(|n| n.round() as u64).collect();
        Self { rhos, z, aucs: means(|t| t.auc), lengths }
    }

    fn pooled(&self, weight: PoolWeight, confidence: Confidence) -> Option<PooledRho> {
        pool_fisher(&self.rhos, &self.lengths, weight, confidence)
    }

    fn share_positive(&self) -> Option<f64> {
        let n_positive = self.rhos.iter().filter(|&&rho| rho > 0.0).count();
        (!self.rhos.is_empty()).then(|| n_positive as f64 / self.rhos.len() as f64)
    }
}

fn within(problems: &OfProblems, intervals: &Intervals<'_>) -> Figure {
    let all = problems.pooled(PoolWeight::Equal, intervals.confidence);
    let figure = Figure {
        rho: all.map(|p| p.rho),
        auc: epikv_stats::moments::mean(&problems.aucs),
        ci_lo: all.and_then(|p| p.lo),
        ci_hi: all.and_then(|p| p.hi),
        ..Figure::default()
    };
    figure.with_draws(intervals.resamples.draws_of_rho(&problems.z), intervals.confidence)
}

#[cfg(test)]
mod tests {
    use epikv_signals::{SIGNALS, SignalRow};

    use super::*;
    use crate::record::{RecordOptions, record};
    use crate::shared::{decoder, label, trace};
    use crate::study::join::Mask;

    /// With 200 replicates under seed 1.
    fn correlate(traces: &[Labelled]) -> Correlation {
        let resamples = Resamples::new(1, 200);
        let (confidence, fisher) = (Confidence::P95, FisherMethod::Plain);
        let intervals = Intervals { confidence, fisher, resamples: &resamples, n_surrogates: 19 };
        super::correlate(traces, &intervals)
    }

    fn labelled(tokens: &[(f32, bool)]) -> Labelled {
        Labelled::new(tokens.iter().map(|&(v, one)| (Some(v), one)))
    }

    /// Inside each trace the signal says nothing; both its level and the share of important tokens rise from trace to trace.
    fn level_shifts() -> Vec<Labelled> {
        let traces: [(f32, &[usize]); 5] =
            [(0.0, &[2]), (5.0, &[2]), (10.0, &[1, 3]), (15.0, &[1, 2, 3]), (20.0, &[0, 1, 3, 4])];
        let even =
            |(level, ones): (f32, &[usize])| labelled(&[0, 1, 2, 3, 4].map(|i| (level + i as f32, ones.contains(&i))));
        traces.map(even).to_vec()
    }

    #[test]
    fn pooled_and_within_are_two_questions() {
        let found = correlate(&level_shifts());
        assert_eq!((found.n_tokens, found.n_traces, found.n_eff), (25, 5, 5));
        assert_eq!(found.base_rate, Some(0.44));
        assert!(found.pooled.rho.expect("defined") > 0.4, "{:?}", found.pooled);
        assert_eq!((found.within.rho, found.within.auc), (Some(0.0), Some(0.5)));
        // Shares 1/5, 1/5, 2/5, 3/5, 4/5 beside rising levels: one tie.
        assert!((found.between.rho.expect("defined") - 9.5 / 95.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!((found.n_between, found.random_effects.expect("defined").k), (5, 5));
        let ci = &found.pooled;
        assert!(ci.ci_lo < ci.rho && ci.rho < ci.ci_hi);
    }

    #[test]
    fn by_hand() {
        // The traces of `TraceRho`'s test, mirrored: rho = +-1.5/sqrt(4.5), so the pooled z is 0.
        let up = labelled(&[(1.0, false), (2.0, true), (2.0, false), (3.0, true)]);
        let down = labelled(&[(1.0, true), (2.0, false), (2.0, true), (3.0, false)]);
        let found = correlate(&[up.clone(), down]);
        assert!(found.within.rho.expect("defined").abs() < 1e-15);
        assert_eq!(found.within.auc, Some(0.5));
        assert_eq!((found.pooled.rho, found.pooled.auc), (Some(0.0), Some(0.5)));
        assert_eq!(found.pooled.ci_lo, None, "two traces have no Fisher interval");
        let alone = correlate(&[up]);
        assert!((alone.within.rho.expect("defined") - 1.5 / 4.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(alone.within.ci_lo, None, "one trace has no variance between traces");
    }

    #[test]
    fn the_bootstrap_takes_traces_whole() {
        let found = correlate(&level_shifts());
        for figure in [&found.pooled, &found.within] {
            assert_eq!(
                (figure.draws.replicates.len(), figure.draws.n_defined(), figure.draws.jackknife.len()),
                (200, 200, 5)
            );
        }
        let (pooled, draws) = (found.pooled.rho.expect("defined"), &found.pooled.draws);
        assert!(found.pooled.boot_lo < Some(pooled) && Some(pooled) < found.pooled.boot_hi);
        // Leaving out the last trace is correlating the others.
        let others = correlate(&level_shifts()[..4]);
        assert_eq!(draws.jackknife[4], others.pooled.rho);
        let mean_z = |rhos: &[f64]| (rhos.iter().map(|r| r.atanh()).sum::<f64>() / rhos.len() as f64).tanh();
        let rhos: Vec<f64> = found.by_trace.iter().flatten().map(|t| t.rho).collect();
        assert!((found.within.draws.jackknife[4].expect("defined") - mean_z(&rhos[..4])).abs() < 1e-12);
        assert_eq!((found.share_positive, found.k_clipped), (Some(0.0), 0));
    }

    #[test]
    fn copies_of_a_trace_are_one_observation() {
        let traces = level_shifts();
        let copied: Vec<Labelled> = traces.iter().flat_map(|trace| vec![trace.clone(); 4]).collect();
        let resamples = Resamples::new(1, 200);
        let (confidence, fisher) = (Confidence::P95, FisherMethod::Plain);
        let intervals = Intervals { confidence, fisher, resamples: &resamples, n_surrogates: 19 };
        let once = correlate(&traces);
        let found = correlate_problems(&copied, &Problems::new((0..20).map(|i| i / 4)), &intervals);
        assert_eq!((found.n_traces, found.n_usable, found.n_eff, found.n_between), (20, 20, 5, 5));
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9,
            (a, b) => a == b,
        };
        for (four, one) in
            [(&found.pooled, &once.pooled), (&found.within, &once.within), (&found.between, &once.between)]
        {
            for of in [
                (|f| f.rho) as fn(&Figure) -> Option<f64>,
                |f| f.auc,
                |f| f.ci_lo,
                |f| f.ci_hi,
                |f| f.boot_lo,
                |f| f.boot_hi,
                |f| f.tested.p_cross,
                |f| f.tested.p_shift,
            ] {
                assert!(near(of(four), of(one)), "{:?} {:?}", of(four), of(one));
            }
        }
        // As traces of their own they would pretend to be twenty observations.
        let pretended = correlate(&copied);
        assert_eq!((pretended.n_eff, pretended.pooled.ci_lo > once.pooled.ci_lo), (20, true));
    }

    #[test]
    fn undefined_traces_are_counted_and_change_nothing() {
        let mut traces = level_shifts();
        let before = correlate(&traces);
        traces.push(labelled(&[(9.0, true), (9.0, false), (9.0, true), (9.0, false)]));
        traces.push(labelled(&[(1.0, true), (2.0, true), (3.0, true), (4.0, true)]));
        traces.push(Labelled::new([(Some(1.0), true), (None, false)]));
        let after = correlate(&traces);
        assert_eq!((after.n_traces, after.n_eff, after.n_tokens), (8, 5, 25));
        assert_eq!((after.n_short, after.n_constant_label, after.n_constant_signal), (1, 1, 1));
        assert_eq!(after.n_undefined, 1);
        assert_eq!(after.base_rate, before.base_rate);
        assert_eq!((after.pooled, after.within), (before.pooled, before.within));
        assert_eq!(after.by_trace[7], Err(Undefined::Short));
    }

    #[test]
    fn without_traces_everything_is_undefined() {
        let found = correlate(&[]);
        assert_eq!(found, Correlation::default());
    }

    #[test]
    fn a_recorded_signal_finds_the_labels_made_from_it() {
        let rows: Vec<&SignalRow> = SIGNALS.iter().collect();
        let trace = trace(60, 20);
        let recording = record(&decoder(), &trace, &rows, RecordOptions::default()).expect("fits");
        let values = &recording.columns[2].values;
        let mut sorted: Vec<f32> = values[20..].iter().flatten().copied().collect();
        sorted.sort_by(f32::total_cmp);
        let median = sorted[20];
        let labels: Vec<_> = (20..60)
            .map(|pos| label(pos as i32, trace.token_ids[pos], true, values[pos].map(|v| v >= median)))
            .collect();
        let mask = Mask::new(&recording, &labels).expect("its own labels");
        let joined: Vec<Labelled> = recording.columns.iter().map(|column| mask.pair(&column.values)).collect();
        let found: Vec<_> = joined.iter().map(|l| correlate(std::slice::from_ref(l))).collect();
        // A signal that waits for tokens to come leaves the last ones out.
        let whole: Vec<_> = joined.iter().zip(&found).filter(|(l, _)| l.signal().len() == 40).map(|(_, f)| f).collect();
        assert!(whole.len() > found.len() / 2);
        assert!(whole.iter().all(|f| f.n_tokens == 40 && f.base_rate == Some(0.5)));
        assert_eq!(found[2].pooled.auc, Some(1.0));
        // The largest that a binary label at a base rate of 1/2 allows.
        assert!((found[2].pooled.rho.expect("defined") - 0.75_f64.sqrt()).abs() < 1e-3);
        assert!(found.iter().enumerate().all(|(i, f)| i == 2 || f.pooled.auc < Some(1.0)));
    }
}
