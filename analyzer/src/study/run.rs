//! Every signal, layer and smoothing against the labels, problem set by problem set, with baselines beside.
//!
//! Smoothed series are made from the recorded ones by the code that also runs beside a policy ([`Smoother`]). They start
//! where windows start ([`WindowFrom`](crate::WindowFrom)). Columns are independent of one another and run in parallel.
//! No number depends on how.

use std::borrow::Cow;

use epikv_signals::Smoother;
use rayon::prelude::*;

use crate::error::Result;
use crate::record::{Column, Recording};
use crate::study::baseline::Baseline;
use crate::study::column::{Place, adjust, finding, smooth};
use crate::study::findings::{DatasetFindings, Finding, Source};
use crate::study::join::Labelled;
use crate::study::lags::{Series, profile};
use crate::study::pools::{problem_sets, problems};
use crate::study::problems::Problems;
use crate::study::resamples::Resamples;
use crate::study::sample::Sample;
use crate::study::settings::Settings;

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
        let problems = problems(&own);
        let findings = planned.par_iter().map(|column| {
            let finding = find(column, &own, &problems, settings, &resamples);
            done();
            finding
        });
        let mut findings = findings.collect::<Result<Vec<_>>>()?;
        adjust(&mut findings);
        let trace_ids = own.iter().map(|sample| sample.recording.trace_id.clone()).collect();
        let is_pooled = settings.pools.iter().any(|pool| pool.name() == name);
        let problem_ids = own.iter().map(|sample| sample.problem_id.clone()).collect();
        Ok(DatasetFindings { dataset: name, is_pooled, trace_ids, problem_ids, problems, findings })
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

fn find(
    column: &Planned<'_>,
    samples: &[&Sample],
    problems: &Problems,
    settings: &Settings,
    resamples: &Resamples,
) -> Result<Finding> {
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
                lags = profile(&series, problems, settings.max_lag);
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
    Ok(Finding { lags, ..finding(place, &traces, windows.as_deref(), problems, true, settings, resamples) })
}

#[cfg(test)]
mod tests {
    use epikv_signals::{SIGNALS, SignalRow};

    use super::*;
    use crate::record::{RecordOptions, record};
    use crate::shared::{decoder, label, trace};
    use crate::study::pools::Pool;
    use crate::study::settings::tests::settings;

    fn samples(n: usize) -> Vec<Sample> {
        let rows: Vec<&SignalRow> = SIGNALS.iter().collect();
        let decoder = decoder();
        (0..n)
            .map(|i| {
                let mut trace = trace(40 + i, 10);
                trace.trace_id = format!("t{i}");
                trace.dataset = ["b", "a"][i % 2].to_owned();
                trace.problem_id = format!("p{i}");
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
        assert_eq!(
            crate::tables::rows::correlations_by_trace(&found, 8).len(),
            7 * found[0].findings.len(),
            "no trace twice"
        );
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
}
