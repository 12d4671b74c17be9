//! Every signal, layer and smoothing against the labels, problem set by problem set, with baselines beside.
//!
//! Smoothed series are made from the recorded ones by the code that also runs beside a policy ([`Smoother`]). They start
//! where windows start ([`WindowFrom`]). Columns are independent of one another and run in parallel; no number depends on
//! how.

use std::borrow::Cow;

use epikv_schemas::Trace;
use epikv_signals::Smoother;
use epikv_stats::{Confidence, FisherMethod, RankScratch, SignalOrder};
use rayon::prelude::*;

use crate::bands::BAND_SIGNAL;
use crate::baseline::Baseline;
use crate::correlate::{Intervals, correlate, correlate_given};
use crate::error::Result;
use crate::findings::{DatasetFindings, Finding, Source, TraceShape};
use crate::join::{Labelled, Mask};
use crate::lags::{Series, profile};
use crate::pools::{Pool, problem_sets};
use crate::record::{Column, Recording, WindowFrom};
use crate::resamples::Resamples;
use crate::tested::{self, Tested};
use crate::trace_rho::TraceRho;
use crate::windows::Windows;

/// A trace with its labels and what was recorded of it.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Problem set of the trace.
    pub dataset: String,
    /// Problem that it solves; several samples of one problem are never split apart.
    pub problem_id: String,
    /// Signals of the model.
    pub recording: Recording,
    /// The same signals of random weights, where there are such.
    pub random: Option<Recording>,
    /// The tokens that count.
    pub mask: Mask,
    /// The occluded windows that count; `None` without labels of windows.
    pub windows: Option<Windows>,
}

impl Sample {
    /// Joins a trace, its recordings and its labels.
    ///
    /// # Errors
    /// If the labels belong to another trace.
    pub fn new<'l>(
        trace: &Trace,
        recording: Recording,
        random: Option<Recording>,
        labels: impl IntoIterator<Item = &'l epikv_schemas::LabelToken>,
    ) -> Result<Self> {
        let mask = Mask::new(&recording, labels)?;
        let (dataset, problem_id) = (trace.dataset.clone(), trace.problem_id.clone());
        Ok(Self { dataset, problem_id, recording, random, mask, windows: None })
    }

    /// The same with the labels of its windows.
    ///
    /// # Errors
    /// If they belong to another trace.
    pub fn with_windows<'l>(self, labels: impl IntoIterator<Item = &'l epikv_schemas::LabelWindow>) -> Result<Self> {
        let windows = Some(Windows::new(&self.recording, labels)?);
        Ok(Self { windows, ..self })
    }
}

/// How signals are compared with labels.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Smoothers, in the order of the rows.
    pub smoothers: Vec<Smoother>,
    /// Tokens of a smoother's window; not 0.
    pub window: usize,
    /// Where smoothers start.
    pub window_from: WindowFrom,
    /// Level of all intervals.
    pub confidence: Confidence,
    /// Form of the pooled interval on usable traces.
    pub fisher: FisherMethod,
    /// Replicates of the trace bootstrap.
    pub replicates: usize,
    /// Replicates of the tests against labels of other traces and against shifted ones.
    pub surrogates: usize,
    /// Seed of the trace bootstrap and of the surrogates.
    pub seed: u64,
    /// Tokens that a lag profile reaches to either side; 0 for none.
    pub max_lag: usize,
    /// Problem sets that are pooled.
    pub pools: Vec<Pool>,
}

impl Settings {
    /// The smoother that pages show where there is room for one: `mean64` where it was asked for, else the first.
    pub(crate) fn shown_smoothing(&self) -> String {
        let first = self.smoothers.first().copied().unwrap_or(Smoother::Raw);
        let shown = if self.smoothers.contains(&Smoother::Mean) { Smoother::Mean } else { first };
        shown.name(self.window)
    }
}

/// A column to compute.
enum Planned<'s> {
    Recorded { source: Source, columns: Vec<(&'s Sample, &'s Column)>, smoother: Smoother },
    Baseline(Baseline),
}

/// Correlates every column of the samples, problem sets in order of their names and then the pools. `done` is called after each column.
///
/// # Errors
/// If the window of the smoothers is empty.
pub fn study(samples: &[Sample], settings: &Settings, done: &(dyn Fn() + Sync)) -> Result<Vec<DatasetFindings>> {
    let resamples = Resamples::new(settings.seed, settings.replicates);
    let of_dataset = |(name, own): (String, Vec<&Sample>)| {
        let planned = plan(&own, &settings.smoothers);
        let findings = planned.par_iter().map(|column| {
            let finding = find(column, &own, settings, &resamples);
            done();
            finding
        });
        let mut findings = findings.collect::<Result<Vec<_>>>()?;
        adjust(&mut findings);
        let trace_ids = own.iter().map(|sample| sample.recording.trace_id.clone()).collect();
        let is_pooled = settings.pools.iter().any(|pool| pool.name() == name);
        Ok(DatasetFindings { dataset: name, is_pooled, trace_ids, findings })
    };
    problem_sets(samples, &settings.pools).into_iter().map(of_dataset).collect()
}

/// Columns that [`study`] will compute, for a progress bar.
pub fn n_columns(samples: &[Sample], settings: &Settings) -> usize {
    let sets = problem_sets(samples, &settings.pools);
    sets.iter().map(|(_, own)| plan(own, &settings.smoothers).len()).sum()
}

/// The columns of a problem set. All its recordings have the same columns; random weights count where all traces have them.
fn plan<'s>(samples: &[&'s Sample], smoothers: &[Smoother]) -> Vec<Planned<'s>> {
    let mut planned = Vec::new();
    let of_model: Vec<&Recording> = samples.iter().map(|sample| &sample.recording).collect();
    let of_random: Option<Vec<&Recording>> = samples.iter().map(|sample| sample.random.as_ref()).collect();
    for (source, recordings) in [(Source::Model, Some(of_model)), (Source::RandomWeights, of_random)] {
        let Some(recordings) = recordings else { continue };
        for at in 0..recordings.iter().map(|recording| recording.columns.len()).min().unwrap_or(0) {
            for &smoother in smoothers {
                let columns =
                    samples.iter().zip(&recordings).map(|(&sample, recording)| (sample, &recording.columns[at]));
                planned.push(Planned::Recorded { source, columns: columns.collect(), smoother });
            }
        }
    }
    planned.extend(Baseline::ALL.map(Planned::Baseline));
    planned
}

/// What holds over a family: all layers and smoothings of a signal from one source, in one unit and scope.
pub(crate) fn adjust(findings: &mut [Finding]) {
    for family in findings.chunk_by_mut(|a, b| (a.source, a.signal) == (b.source, b.signal)) {
        let scopes: [fn(&mut Finding) -> Option<&mut Tested>; 4] = [
            |f| Some(&mut f.correlation.pooled.tested),
            |f| Some(&mut f.correlation.within.tested),
            |f| f.windows.as_mut().map(|w| &mut w.pooled.tested),
            |f| f.windows.as_mut().map(|w| &mut w.within.tested),
        ];
        for scope in scopes {
            tested::adjust(&mut family.iter_mut().filter_map(scope).collect::<Vec<_>>());
        }
    }
}

fn find(column: &Planned<'_>, samples: &[&Sample], settings: &Settings, resamples: &Resamples) -> Result<Finding> {
    let mut lags = Vec::new();
    let (place, traces, windows) = match column {
        Planned::Recorded { source, columns, smoother } => {
            let smoothed = columns
                .iter()
                .map(|(sample, column)| smooth(&column.values, sample.recording.n_prompt, *smoother, settings));
            let series = smoothed.collect::<Result<Vec<_>>>()?;
            let pair = |((sample, _), values): (&(&Sample, &Column), &Cow<'_, [Option<f32>]>)| {
                (sample.mask.pair(values), sample.windows.as_ref().map(|windows| windows.pair(values)))
            };
            let (traces, windows): (Vec<Labelled>, Vec<Option<Labelled>>) =
                columns.iter().zip(&series).map(pair).unzip();
            if *source == Source::Model {
                let series: Vec<Series<'_>> = columns
                    .iter()
                    .zip(&series)
                    .map(|((sample, _), values)| Series {
                        values,
                        mask: &sample.mask,
                        n_prompt: sample.recording.n_prompt,
                    })
                    .collect();
                lags = profile(&series, settings.max_lag);
            }
            let windows = windows.into_iter().collect::<Option<Vec<_>>>();
            let first = columns.first().map(|(_, column)| *column);
            let (signal, layer) = (first.map_or("", |c| c.signal), first.and_then(|c| c.layer));
            (Place { source: *source, signal, layer, smoother: *smoother }, traces, windows)
        }
        Planned::Baseline(baseline) => {
            let place = Place { source: Source::None, signal: baseline.name(), layer: None, smoother: Smoother::Raw };
            (place, baseline.columns(samples), None)
        }
    };
    Ok(Finding { lags, ..finding(place, &traces, windows.as_deref(), true, settings, resamples) })
}

/// Which column of a study.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) source: Source,
    pub(crate) signal: &'static str,
    pub(crate) layer: Option<usize>,
    pub(crate) smoother: Smoother,
}

/// Correlates one column: its tokens and, where there are such labels, its windows, both by trace. Without shapes it says
/// nothing of the position.
pub(crate) fn finding(
    place: Place,
    traces: &[Labelled],
    windows: Option<&[Labelled]>,
    with_shapes: bool,
    settings: &Settings,
    resamples: &Resamples,
) -> Finding {
    let Settings { confidence, fisher, surrogates, .. } = *settings;
    let intervals = Intervals { confidence, fisher, resamples, n_surrogates: surrogates };
    let Place { source, signal, layer, smoother } = place;
    let mut scratch = RankScratch::default();
    // One sort a trace gives its coefficient and its shape; the coefficient alone takes half the work.
    let of = |trace: &Labelled| {
        if !with_shapes {
            return (TraceRho::of(trace, &mut scratch), TraceShape::unknown(trace));
        }
        let sorted = SignalOrder::new(trace.signal());
        (TraceRho::of_order(trace, sorted.as_ref()), TraceShape::of(trace, sorted.as_ref()))
    };
    let (by_trace, shapes) = traces.iter().map(of).unzip();
    let mut correlation = correlate_given(traces, by_trace, &intervals);
    if signal != BAND_SIGNAL {
        // Only the means over bands combine replicates.
        correlation.forget_draws();
    }
    let windows = windows.map(|windows| {
        let mut correlation = correlate(windows, &intervals);
        correlation.forget_draws();
        correlation
    });
    Finding { source, signal, layer, smoother, correlation, windows, shapes, lags: Vec::new() }
}

/// A recorded series, smoothed. Smoothers start at the first token, and again at the first decoded one.
pub(crate) fn smooth<'v>(
    values: &'v [Option<f32>],
    n_prompt: usize,
    smoother: Smoother,
    settings: &Settings,
) -> Result<Cow<'v, [Option<f32>]>> {
    if smoother == Smoother::Raw && values.iter().flatten().all(|value| value.is_finite()) {
        return Ok(Cow::Borrowed(values));
    }
    let mut smoothing = smoother.start(settings.window)?;
    let (prompt, decoded) = values.split_at(n_prompt.min(values.len()));
    let mut smoothed: Vec<_> = prompt.iter().map(|&value| smoothing.push(value)).collect();
    if settings.window_from == WindowFrom::Decode {
        smoothing.reset();
    }
    smoothed.extend(decoded.iter().map(|&value| smoothing.push(value)));
    Ok(Cow::Owned(smoothed))
}

#[cfg(test)]
pub(crate) mod tests {
    use epikv_signals::{SIGNALS, SignalRow};

    use super::*;
    use crate::record::{RecordOptions, record};
    use crate::shared::{decoder, label, trace};

    pub(crate) fn settings() -> Settings {
        Settings {
            smoothers: Smoother::ALL.to_vec(),
            window: 8,
            window_from: WindowFrom::Decode,
            confidence: Confidence::P95,
            fisher: FisherMethod::Plain,
            replicates: 50,
            surrogates: 19,
            seed: 0,
            max_lag: 4,
            pools: Vec::new(),
        }
    }

    fn samples(n: usize) -> Vec<Sample> {
        let rows: Vec<&SignalRow> = SIGNALS.iter().collect();
        let decoder = decoder();
        (0..n)
            .map(|i| {
                let mut trace = trace(40 + i, 10);
                trace.trace_id = format!("t{i}");
                trace.dataset = ["b", "a"][i % 2].to_owned();
                trace.token_ids.rotate_left(i);
                let labels: Vec<_> = (10..40 + i)
                    .map(|pos| {
                        let mut label =
                            label(pos as i32, trace.token_ids[pos], true, Some((pos / 4 + i).is_multiple_of(3)));
                        label.trace_id.clone_from(&trace.trace_id);
                        label
                    })
                    .collect();
                let recording = record(&decoder, &trace, &rows, RecordOptions::default()).expect("fits");
                Sample::new(&trace, recording.clone(), Some(recording), &labels).expect("its labels")
            })
            .collect()
    }

    #[test]
    fn every_signal_layer_and_smoothing_has_a_column_in_every_problem_set() {
        let samples = samples(7);
        let found = study(&samples, &settings(), &|| ()).expect("a window");
        let n_signals = samples[0].recording.columns.len();
        let n_smoothers = Smoother::ALL.len();
        assert_eq!(
            found.iter().map(|d| (d.dataset.as_str(), d.trace_ids.len())).collect::<Vec<_>>(),
            [("a", 3), ("b", 4)]
        );
        assert!(found.iter().all(|d| d.findings.len() == 2 * n_signals * n_smoothers + 2));
        assert_eq!(n_columns(&samples, &settings()), found.iter().map(|d| d.findings.len()).sum::<usize>());
        let b = &found[1];
        let raw = b.find(Source::Model, "hs_l2", Some(2), Smoother::Raw).expect("a column");
        assert_eq!((raw.correlation.n_traces, raw.correlation.n_eff, raw.shapes.len()), (4, 4, 4));
        let same = b.find(Source::RandomWeights, "hs_l2", Some(2), Smoother::Raw).expect("a column");
        assert_eq!(same.correlation, raw.correlation, "the same recording was given for both");
        assert!(raw.windows.is_none(), "no labels of windows were given");
        assert_eq!(raw.lags.len(), 7);
        assert!((raw.lags[3].rho.expect("defined") - raw.correlation.within.rho.expect("defined")).abs() < 1e-12);
        assert!(same.lags.is_empty());
        let tested = &raw.correlation.within.tested;
        assert!(tested.p_cross.is_some() && tested.p_maxt >= tested.p_cross && tested.q_bh.is_some(), "{tested:?}");
        let position = b.find(Source::None, "position", None, Smoother::Raw).expect("a baseline");
        assert_eq!(position.shapes[0].rho_position, Some(1.0));
    }

    #[test]
    fn pooled_sets_come_last_and_have_the_traces_of_their_members() {
        let samples = samples(7);
        let pool = Pool { members: vec!["b".to_owned(), "a".to_owned()] };
        let settings = Settings { smoothers: vec![Smoother::Raw], pools: vec![pool], ..settings() };
        let found = study(&samples, &settings, &|| ()).expect("a window");
        let names: Vec<(&str, bool, usize)> =
            found.iter().map(|d| (d.dataset.as_str(), d.is_pooled, d.trace_ids.len())).collect();
        assert_eq!(names, [("a", false, 3), ("b", false, 4), ("b+a", true, 7)]);
        let n =
            |at: usize| found[at].find(Source::None, "position", None, Smoother::Raw).map(|f| f.correlation.n_tokens);
        assert_eq!(n(2), n(0).zip(n(1)).map(|(a, b)| a + b));
        assert_eq!(n_columns(&samples, &settings), found.iter().map(|d| d.findings.len()).sum::<usize>());
        assert_eq!(crate::rows::correlations_by_trace(&found, 8).len(), 7 * found[0].findings.len(), "no trace twice");
    }

    #[test]
    fn the_columns_do_not_depend_on_the_threads() {
        let samples = samples(6);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let found = pool.install(|| study(&samples, &settings(), &|| ())).expect("a window");
            let figures =
                |d: &DatasetFindings| -> Vec<_> { d.findings.iter().map(|f| f.correlation.clone()).collect() };
            found.iter().map(figures).collect::<Vec<_>>()
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn smoothers_start_where_they_are_told_to() {
        let values: Vec<Option<f32>> = [8.0, 4.0, 2.0, 6.0].map(Some).to_vec();
        let mut settings = settings();
        let mean = |settings: &Settings| smooth(&values, 2, Smoother::Mean, settings).expect("a window").into_owned();
        assert_eq!(mean(&settings), [8.0, 6.0, 2.0, 4.0].map(Some));
        settings.window_from = WindowFrom::Prompt;
        assert_eq!(mean(&settings), [8.0, 6.0, 14.0 / 3.0, 5.0].map(Some));
    }
}
