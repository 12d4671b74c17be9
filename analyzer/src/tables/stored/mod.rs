//! Recorded signals, a column at a time: each column is read from its files when it is needed and dropped afterwards.
//!
//! [`Stored`] finds the traces in the files of signals, which may be split over several folders, and checks every token
//! against the traces; [`Stored::study`] then does what [`crate::study()`] does to recordings, with the same figures. A
//! column of 10 million tokens is 80 MB while it is at work, and as many columns are at work as there are threads.

mod labels;
mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use epikv_schemas::{
    ColumnFile, NumberColumn, Record, SignalsAge, SignalsAttn, SignalsHs, SignalsKv, SignalsScore, SignalsToken, Trace,
};
use epikv_signals::{Build, SIGNALS, Smoother};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::record::Recording;
use crate::study::baseline::Baseline;
use crate::study::column::{Place, adjust, finding, smooth};
use crate::study::findings::{DatasetFindings, Finding, Source};
use crate::study::join::{Labelled, Mask};
use crate::study::pools::{problem_sets, problems};
use crate::study::resamples::Resamples;
use crate::study::sample::Sample;
use crate::study::settings::Settings;
use crate::tables::rows::signal_of_column;

pub use self::labels::{LabelledSamples, join_labels};
use self::runs::{Run, runs};

/// What is asked of stored signals.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'s> {
    /// Names of signals; `None` for all.
    pub signals: Option<&'s [&'s str]>,
    /// Whether trends, memory and coefficients given the position are computed: half of the work without resamples.
    pub shapes: bool,
}

/// A series that is in the files, or follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Series {
    signal: &'static str,
    /// `None` for a signal of the whole model, and for the mean over layers.
    layer: Option<u16>,
    /// The column that holds it; `None` for the mean of the signal's layers, which files leave out.
    column: Option<NumberColumn>,
}

/// The series of one table, and where the rows of each trace are: file and rows.
#[derive(Debug)]
struct Table {
    series: Vec<Series>,
    traces: BTreeMap<String, (usize, Range<usize>)>,
}

/// The values of a series, as the files hold them.
struct Values<'t> {
    /// Empty for a file that is not needed.
    files: Vec<Vec<Option<f32>>>,
    /// File and rows of each sample.
    rows: Vec<&'t (usize, Range<usize>)>,
}

impl Values<'_> {
    /// Those of each sample.
    fn by_sample(&self) -> impl Iterator<Item = &[Option<f32>]> {
        self.rows.iter().map(|(file, rows)| &self.files[*file][rows.clone()])
    }
}

/// Files of recorded signals.
#[derive(Debug, Default)]
pub struct Stored {
    files: Vec<ColumnFile>,
    tables: Vec<Table>,
}

impl Stored {
    /// Opens the files of signals of some folders and finds the given traces in them.
    ///
    /// # Errors
    /// If a folder has no such files, two files of a table differ in their columns, a trace is in two of them, or its tokens
    /// are not those of the trace given.
    pub fn open(folders: &[PathBuf], traces: &[Trace]) -> Result<Self> {
        let known: BTreeMap<&str, &Trace> = traces.iter().map(|trace| (trace.trace_id.as_str(), trace)).collect();
        let mut stored = Self::default();
        stored.add::<SignalsHs>(folders, &known)?;
        stored.add::<SignalsKv>(folders, &known)?;
        stored.add::<SignalsToken>(folders, &known)?;
        stored.add::<SignalsAttn>(folders, &known)?;
        stored.add::<SignalsAge>(folders, &known)?;
        stored.add::<SignalsScore>(folders, &known)?;
        match folders.first() {
            Some(folder) if stored.tables.is_empty() => Err(Error::NothingRecorded { folder: folder.clone() }),
            _ => Ok(stored),
        }
    }

    /// Adds the files of a table; ages are told apart by their rows, and each is a table of its own.
    fn add<R: Record>(&mut self, folders: &[PathBuf], known: &BTreeMap<&str, &Trace>) -> Result<()> {
        let name = R::table().file_name();
        let paths = folders.iter().map(|folder| folder.join(&name)).filter(|path| path.exists());
        let files = paths.map(|path| Ok(ColumnFile::open::<R>(&path)?)).collect::<Result<Vec<_>>>()?;
        let Some(first) = files.first() else { return Ok(()) };
        let has_ages = R::table().column("age").is_some();
        let mut tables: BTreeMap<Option<&'static str>, Table> = BTreeMap::new();
        let mut ages: Option<BTreeSet<Option<&'static str>>> = None;
        for (at, file) in files.iter().enumerate() {
            let mut own = BTreeSet::new();
            for Run { trace_id, signal, rows } in runs(file, known, has_ages)? {
                let new = || Table { series: series_of(first, signal), traces: BTreeMap::new() };
                let table = tables.entry(signal).or_insert_with(new);
                if table.traces.insert(trace_id.clone(), (self.files.len() + at, rows)).is_some() {
                    return Err(Error::RecordedTwice { trace_id, path: file.path().to_owned() });
                }
                own.insert(signal);
            }
            // A file without any of the traces has no say in which ages there are.
            let is_alike = own.is_empty() || *ages.get_or_insert_with(|| own.clone()) == own;
            if file.number_columns() != first.number_columns() || !is_alike {
                return Err(Error::OtherColumns { path: file.path().to_owned(), first: first.path().to_owned() });
            }
        }
        if !has_ages {
            // Also where no trace is found, so that the table counts as there.
            tables.entry(None).or_insert_with(|| Table { series: series_of(first, None), traces: BTreeMap::new() });
        }
        self.files.extend(files);
        self.tables.extend(tables.into_values());
        Ok(())
    }

    /// Every file.
    pub fn files(&self) -> impl Iterator<Item = &ColumnFile> {
        self.files.iter()
    }

    /// Refuses signals that were asked for by name and that no table has.
    ///
    /// # Errors
    /// If there is such a signal.
    pub fn check(&self, asked: Asked<'_>) -> Result<()> {
        let mut known: Vec<&str> = self.tables.iter().flat_map(|t| &t.series).map(|series| series.signal).collect();
        known.dedup();
        match asked.signals.into_iter().flatten().find(|name| !known.contains(name)) {
            Some(name) => Err(Error::NotRecordedSignal { signal: (*name).to_owned(), known: known.join(", ") }),
            None => Ok(()),
        }
    }

    /// One more than the highest layer that was recorded.
    pub fn n_layers(&self) -> usize {
        let layers = self.tables.iter().flat_map(|table| &table.series).filter_map(|series| series.layer);
        layers.max().map_or(0, |layer| usize::from(layer) + 1)
    }

    /// The traces that every table has, without labels yet.
    ///
    /// # Errors
    /// If a trace contradicts itself.
    pub fn samples(&self, traces: &[&Trace]) -> Result<Vec<Sample>> {
        let is_recorded = |trace: &&&Trace| self.tables.iter().all(|t| t.traces.contains_key(&trace.trace_id));
        traces.iter().filter(is_recorded).map(|trace| sample(trace)).collect()
    }

    /// Columns that [`Self::study`] will compute, for a progress bar.
    pub fn n_columns(&self, samples: &[Sample], asked: Asked<'_>, settings: &Settings) -> usize {
        problem_sets(samples, &settings.pools).len()
            * (self.series(asked).len() * settings.smoothers.len() + Baseline::ALL.len())
    }

    /// Correlates the stored columns of the samples, problem sets in order of their names. `done` is called after each column.
    ///
    /// # Errors
    /// If a signal asked for is not there, the window of the smoothers is empty or a file cannot be read.
    pub fn study(
        &self,
        samples: &[Sample],
        asked: Asked<'_>,
        settings: &Settings,
        done: &(dyn Fn() + Sync),
    ) -> Result<Vec<DatasetFindings>> {
        let resamples = Resamples::new(settings.seed, settings.replicates);
        self.check(asked)?;
        let given = Given { stored: self, asked, settings, resamples: &resamples, done };
        let of_dataset = |(dataset, own): (String, Vec<&Sample>)| {
            let series = self.series(asked).into_iter().map(|(table, series)| Planned::Stored(table, series));
            let planned: Vec<Planned<'_>> = series.chain(Baseline::ALL.map(Planned::Baseline)).collect();
            let findings =
                planned.par_iter().map(|planned| planned.findings(&own, &given)).collect::<Result<Vec<_>>>()?;
            let mut findings = findings.concat();
            adjust(&mut findings);
            let trace_ids = own.iter().map(|sample| sample.recording.trace_id.clone()).collect();
            let is_pooled = settings.pools.iter().any(|pool| pool.name() == dataset);
            let (problem_ids, problems) = (own.iter().map(|s| s.problem_id.clone()).collect(), problems(&own));
            Ok(DatasetFindings { dataset, is_pooled, trace_ids, problem_ids, problems, findings })
        };
        problem_sets(samples, &settings.pools).into_iter().map(of_dataset).collect()
    }

    /// The series of all tables in the order in which a model's signals are recorded.
    fn series(&self, asked: Asked<'_>) -> Vec<(&Table, Series)> {
        let of_table = |table| move |series: &Series| (table, *series);
        let mut all: Vec<(&Table, Series)> =
            self.tables.iter().flat_map(|table| table.series.iter().map(of_table(table))).collect();
        all.retain(|(_, series)| asked.signals.is_none_or(|names| names.contains(&series.signal)));
        all.sort_by_key(|(_, series)| place_in_registry(series.signal));
        all
    }
}

/// Whether the mean of a signal over layers stands beside its layers.
fn has_mean(signal: &str) -> bool {
    SIGNALS.iter().any(|row| row.spec.name == signal && matches!(row.build, Build::PerLayerAndMean(_)))
}

/// Signals known late come last.
fn place_in_registry(signal: &str) -> (bool, usize) {
    let at = SIGNALS.iter().position(|row| row.spec.name == signal).unwrap_or(SIGNALS.len());
    (SIGNALS.get(at).is_none_or(|row| matches!(row.build, Build::Late(_))), at)
}

/// The series of a file; `aged` names the signal of rows that are told apart by their age.
fn series_of(file: &ColumnFile, aged: Option<&'static str>) -> Vec<Series> {
    let columns = file.number_columns();
    let mut all = Vec::new();
    for (at, &column) in columns.iter().enumerate() {
        let signal = aged.unwrap_or_else(|| signal_of_column(column.name));
        all.push(Series { signal, layer: column.layer, column: Some(column) });
        let is_last = columns.get(at + 1).is_none_or(|next| next.name != column.name);
        if is_last && has_mean(signal) {
            all.push(Series { signal, layer: None, column: None });
        }
    }
    all
}

impl Stored {
    /// The values of a series in the files that hold one of the samples.
    fn read<'t>(&self, table: &'t Table, series: Series, samples: &[&Sample]) -> Result<Values<'t>> {
        let rows: Vec<&(usize, Range<usize>)> =
            samples.iter().filter_map(|sample| table.traces.get(&sample.recording.trace_id)).collect();
        let of_file = |(at, file): (usize, &ColumnFile)| {
            if rows.iter().any(|(own, _)| *own == at) { table.values(file, series) } else { Ok(Vec::new()) }
        };
        let files = self.files.iter().enumerate().map(of_file).collect::<Result<_>>()?;
        Ok(Values { files, rows })
    }
}

impl Table {
    fn values(&self, file: &ColumnFile, series: Series) -> Result<Vec<Option<f32>>> {
        if let Some(column) = series.column {
            return Ok(file.numbers(column)?);
        }
        // As `LayerMean` does it: f64 sums in the order of the layers.
        let own = self.series.iter().filter(|other| other.signal == series.signal);
        let layers: Vec<NumberColumn> = own.filter_map(|other| other.column).collect();
        let mut sums: Vec<Option<f64>> = Vec::new();
        for &column in &layers {
            let values = file.numbers(column)?;
            sums.resize(values.len(), Some(0.0));
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = sum.zip(value).map(|(sum, value)| sum + f64::from(value));
            }
        }
        let n = layers.len() as f64;
        Ok(sums.into_iter().map(|sum| sum.map(|sum| (sum / n) as f32)).collect())
    }
}

/// What every column of a study shares.
struct Given<'s> {
    stored: &'s Stored,
    asked: Asked<'s>,
    settings: &'s Settings,
    resamples: &'s Resamples,
    done: &'s (dyn Fn() + Sync),
}

/// Columns that are computed together.
enum Planned<'t> {
    /// A series, read once for all smoothers.
    Stored(&'t Table, Series),
    Baseline(Baseline),
}

impl Planned<'_> {
    fn findings(&self, samples: &[&Sample], given: &Given<'_>) -> Result<Vec<Finding>> {
        match *self {
            Self::Stored(table, series) => {
                let values = given.stored.read(table, series, samples)?;
                let smoothers = given.settings.smoothers.iter();
                smoothers.map(|&smoother| correlated(series, smoother, &values, samples, given)).collect()
            }
            Self::Baseline(baseline) => {
                let place =
                    Place { source: Source::None, signal: baseline.name(), layer: None, smoother: Smoother::Raw };
                Ok(vec![given.finding(place, &baseline.columns(samples), None, samples)])
            }
        }
    }
}

impl Given<'_> {
    fn finding(&self, place: Place, traces: &[Labelled], windows: Option<&[Labelled]>, samples: &[&Sample]) -> Finding {
        let finding =
            finding(place, traces, windows, &problems(samples), self.asked.shapes, self.settings, self.resamples);
        (self.done)();
        finding
    }
}

/// One series under one smoother.
fn correlated(
    series: Series,
    smoother: Smoother,
    values: &Values<'_>,
    samples: &[&Sample],
    given: &Given<'_>,
) -> Result<Finding> {
    let layer = series.layer.map(usize::from);
    let place = Place { source: Source::Model, signal: series.signal, layer, smoother };
    let (mut traces, mut windows) = (Vec::new(), Vec::new());
    for (sample, values) in samples.iter().zip(values.by_sample()) {
        let values = smooth(values, sample.recording.n_prompt, smoother, given.settings)?;
        traces.push(sample.mask.pair(&values));
        windows.push(sample.windows.as_ref().map(|windows| windows.pair(&values)));
    }
    let windows = windows.into_iter().collect::<Option<Vec<_>>>();
    Ok(given.finding(place, &traces, windows.as_deref(), samples))
}

/// A trace without recording and labels.
fn sample(trace: &Trace) -> Result<Sample> {
    let checked = trace.checked()?;
    let (token_ids, n_prompt) = (checked.token_ids, checked.n_prompt);
    let recording = Recording { trace_id: trace.trace_id.clone(), token_ids, n_prompt, columns: Vec::new() };
    let (dataset, problem_id) = (trace.dataset.clone(), trace.problem_id.clone());
    Ok(Sample { dataset, problem_id, recording, random: None, mask: Mask::default(), windows: None })
}
