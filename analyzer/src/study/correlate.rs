//! One signal against the labels, over many traces.
//!
//! Two figures, always both:
//!
//! - **pooled**: rho and AUC over all tokens of all usable traces at once. It mixes level shifts between traces with
//!   ranking inside them. Its interval is a Fisher form with `n` = usable traces: a convention, not a sampling theory.
//! - **within**: one coefficient a trace, pooled as `tanh(mean(atanh(rho_i)))` with equal weights; the interval is
//!   Student's t over the `atanh(rho_i)`, so that it contains the variance between traces. Its AUC is the plain mean.
//!
//! Both have a trace bootstrap ([`Resamples`]) and a test against labels that cannot know the signal ([`Tested`]) besides.
//! What pooling adds to ranking inside traces is a third figure, **between**: rho over traces of the mean signal with the
//! share of important tokens. Its units are independent, so that its Fisher interval is one.
//!
//! A trace is usable if its own coefficient is defined. The others are left out of both figures and counted by reason, so
//! that both speak of the same tokens.

use epikv_stats::pool::{PoolWeight, PooledRho, clipped_z, pool_fisher};
use epikv_stats::quantile::median;
use epikv_stats::{BinaryRanks, Confidence, FisherMethod, RankScratch, fisher_interval, spearman};

use crate::study::join::Labelled;
use crate::study::resamples::{Draws, Pool, Resamples};
use crate::study::tested::{self, Tested};
use crate::study::trace_rho::{TraceRho, Undefined};

/// Which intervals are computed.
#[derive(Debug, Clone, Copy)]
pub struct Intervals<'r> {
    /// Level of all of them.
    pub confidence: Confidence,
    /// Form of the pooled interval on usable traces.
    pub fisher: FisherMethod,
    /// Replicates of the trace bootstrap; their seed also draws the surrogates.
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
    /// Lower bound of rho by the trace bootstrap.
    pub boot_lo: Option<f64>,
    /// Upper bound of rho by the trace bootstrap.
    pub boot_hi: Option<f64>,
    /// Replicates of rho; may be forgotten once their interval is made.
    pub draws: Draws,
    /// Replicates in which rho is defined.
    pub n_draws: usize,
    /// The largest change of rho when one trace is left out.
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
    /// Usable traces: the independent units.
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
    /// Trace by trace under random effects: tokens and a variance between traces as weights.
    pub random_effects: Option<PooledRho>,
    /// Means of traces against their shares of important tokens.
    pub between: Figure,
    /// Traces with a labelled token, which `between` counts.
    pub n_between: usize,
    /// Median of the coefficients of the traces.
    pub rho_median_trace: Option<f64>,
    /// Share of traces with a positive coefficient.
    pub share_positive: Option<f64>,
    /// Traces whose coefficient was clipped before Fisher's z.
    pub k_clipped: usize,
    /// The coefficient of each trace given, in their order; null where undefined.
    pub by_trace: Vec<Result<TraceRho, Undefined>>,
}

/// Correlates one signal with the labels of many traces.
///
/// Cost `O(n log n)` in the tokens; a replicate of the bootstrap costs `O(min(n, k^2))` for `k` usable traces.
pub fn correlate(traces: &[Labelled], intervals: &Intervals<'_>) -> Correlation {
    let mut scratch = RankScratch::default();
    let by_trace = traces.iter().map(|trace| TraceRho::of(trace, &mut scratch)).collect();
    correlate_given(traces, by_trace, intervals)
}

/// The same with the coefficients of the traces at hand.
pub(crate) fn correlate_given(
    traces: &[Labelled],
    by_trace: Vec<Result<TraceRho, Undefined>>,
    intervals: &Intervals<'_>,
) -> Correlation {
    let usable: Vec<&Labelled> = traces.iter().zip(&by_trace).filter(|(_, rho)| rho.is_ok()).map(|(t, _)| t).collect();
    let rhos: Vec<f64> = by_trace.iter().flatten().map(|t| t.rho).collect();
    let left_out = |reason| by_trace.iter().filter(|rho| rho.err() == Some(reason)).count();
    let (ranks, mut pooled) = pooled(&usable, intervals);
    let mut within = within(&by_trace, intervals);
    [pooled.tested, within.tested] = tested::test(&usable, intervals.n_surrogates, intervals.resamples.seed());
    let lengths: Vec<u64> = by_trace.iter().flatten().map(|t| t.n_tokens).collect();
    let (n_between, between) = between(traces, intervals);
    Correlation {
        n_tokens: ranks.n,
        n_traces: traces.len(),
        n_eff: usable.len(),
        n_short: left_out(Undefined::Short),
        n_constant_label: left_out(Undefined::ConstantLabel),
        n_constant_signal: left_out(Undefined::ConstantSignal),
        n_undefined: traces.iter().map(Labelled::n_undefined).sum(),
        base_rate: ranks.base_rate(),
        pooled,
        within,
        random_effects: pool_fisher(&rhos, &lengths, PoolWeight::RandomEffects, intervals.confidence),
        between,
        n_between,
        rho_median_trace: median(&rhos),
        share_positive: (!rhos.is_empty())
            .then(|| rhos.iter().filter(|&&r| r > 0.0).count() as f64 / rhos.len() as f64),
        k_clipped: rhos.iter().filter(|&&r| clipped_z(r).1).count(),
        by_trace,
    }
}

fn pooled(usable: &[&Labelled], intervals: &Intervals<'_>) -> (BinaryRanks, Figure) {
    let resamples = intervals.resamples;
    let pool = if resamples.has_any(usable.len()) { Pool::new(usable) } else { None };
    let ranks = match &pool {
        Some(pool) => Some(pool.ranks(&vec![1; usable.len()])),
        None => together(usable),
    };
    let Some(ranks) = ranks else { return <_>::default() };
    let fisher = |rho| fisher_interval(rho, usable.len() as u64, intervals.confidence, intervals.fisher);
    let interval = ranks.rho().map(fisher);
    let figure = Figure {
        rho: ranks.rho(),
        auc: ranks.auc(),
        ci_lo: interval.and_then(|ci| ci.lo),
        ci_hi: interval.and_then(|ci| ci.hi),
        ..Figure::default()
    };
    let draws = pool.map(|pool| resamples.draws(usable.len(), |counts| pool.ranks(counts).rho()));
    (ranks, figure.with_draws(draws.unwrap_or_default(), intervals.confidence))
}

/// The ranks of all tokens, once: a third of the work of [`Pool`], where nothing is resampled.
fn together(traces: &[&Labelled]) -> Option<BinaryRanks> {
    let signal = traces.iter().map(|trace| trace.signal()).collect::<Vec<_>>().concat();
    let important = traces.iter().map(|trace| trace.important()).collect::<Vec<_>>().concat();
    BinaryRanks::from_f32(&signal, &important, &mut RankScratch::default())
}

/// Rho over traces, and how many there are.
fn between(traces: &[Labelled], intervals: &Intervals<'_>) -> (usize, Figure) {
    let levels: Vec<(f64, f64)> = traces
        .iter()
        .filter_map(|trace| {
            let (signal, important) = (trace.signal(), trace.important());
            let (sum, n) = (signal.iter().map(|&x| f64::from(x)).sum::<f64>(), signal.len() as f64);
            let n_important = important.iter().filter(|&&one| one).count() as f64;
            (n > 0.0).then(|| (sum / n, n_important / n))
        })
        .collect();
    let (signal, share): (Vec<f64>, Vec<f64>) = levels.into_iter().unzip();
    let rho = spearman(&signal, &share);
    let interval = rho.map(|rho| fisher_interval(rho, signal.len() as u64, intervals.confidence, intervals.fisher));
    let (ci_lo, ci_hi) = (interval.and_then(|ci| ci.lo), interval.and_then(|ci| ci.hi));
    (signal.len(), Figure { rho, ci_lo, ci_hi, ..Figure::default() })
}

fn within(by_trace: &[Result<TraceRho, Undefined>], intervals: &Intervals<'_>) -> Figure {
    let usable: Vec<&TraceRho> = by_trace.iter().flatten().collect();
    let rhos: Vec<f64> = usable.iter().map(|t| t.rho).collect();
    let lengths: Vec<u64> = usable.iter().map(|t| t.n_tokens).collect();
    let aucs: Vec<f64> = usable.iter().map(|t| t.auc).collect();
    let all = pool_fisher(&rhos, &lengths, PoolWeight::Equal, intervals.confidence);
    let figure = Figure {
        rho: all.map(|p| p.rho),
        auc: epikv_stats::moments::mean(&aucs),
        ci_lo: all.and_then(|p| p.lo),
        ci_hi: all.and_then(|p| p.hi),
        ..Figure::default()
    };
    let z: Vec<f64> = rhos.iter().map(|&rho| clipped_z(rho).0).collect();
    figure.with_draws(intervals.resamples.draws_of_rho(&z), intervals.confidence)
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
