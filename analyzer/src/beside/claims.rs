//! The figures for each claim, read from the files of a run.

use std::collections::BTreeMap;
use std::path::Path;

use epikv_schemas::{
    BandSurprisal, Correlations, CorrelationsByTrace, DifficultyRow, EvictionRun, EvictionTiming, GroupPair,
    LabelTrace, Provenance, Record, read_table,
};
use epikv_stats::mcnemar::mcnemar;
use epikv_stats::moments::mean;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::study::bands::Band;

/// A figure in words, and the model that it was measured on.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// The model.
    pub model: String,
    /// The figure, a line each.
    pub lines: Vec<String>,
}

/// From a run to the lines of a figure; none where the run has not what it takes.
pub type Check = fn(&Run) -> Vec<String>;

/// The figures by the names that claims use.
pub const CHECKS: &[(&str, Check)] = &[
    ("band_rho", band_rho),
    ("position_rho", position_rho),
    ("rotation_gap", rotation_gap),
    ("smoothing_ratio", smoothing_ratio),
    ("cosine_against_step", cosine_against_step),
    ("attention_rank", attention_rank),
    ("band_given_surprisal", band_given_surprisal),
    ("layers_with_difficulty", layers_with_difficulty),
    ("epikv_against_raw", |run| run.against("epikv", "epikv-raw")),
    ("h2o_against_full", |run| run.against("h2o", "full")),
    ("epikv_against_h2o", |run| run.against("epikv", "h2o")),
    ("epikv_against_window", |run| run.against("epikv", "window")),
    ("h2o_rewound_against_logical", |run| run.against("h2o;position=rewound", "h2o")),
    ("raas_against_full", |run| run.against("raas", "full")),
    ("r_kv_against_snapkv", |run| run.against("r-kv", "snapkv-decode")),
    ("vase_against_r_kv", |run| run.against("vase", "r-kv")),
    ("vase_with_reserve", |run| run.against("vase", "vase;select=draw")),
    ("vase_with_draws", |run| run.against("vase", "vase;select=top-k+values(25%)")),
    ("important_share", important_share),
    ("time_epikv_h2o", time_epikv_h2o),
];

/// A problem set, a policy and its budget.
type Under<'r> = (&'r str, &'r str, Option<&'r str>);

/// Whether each problem and sample came out right.
type Verdicts<'r> = BTreeMap<(&'r str, i32), bool>;

/// What lies in a folder of results. Tables that are not there are empty.
#[derive(Debug)]
pub struct Run {
    correlations: Vec<Correlations>,
    by_trace: Vec<CorrelationsByTrace>,
    surprisal: Vec<BandSurprisal>,
    difficulty: Vec<DifficultyRow>,
    pairs: Vec<GroupPair>,
    labels: Vec<LabelTrace>,
    runs: Vec<EvictionRun>,
    timings: Vec<EvictionTiming>,
    model: String,
}

impl Run {
    /// Reads the tables of a folder.
    ///
    /// # Errors
    /// If one of them cannot be read, or there is none.
    pub fn open(folder: &Path) -> Result<Self> {
        let mut model = None;
        let run = Self {
            correlations: table(folder, &mut model)?,
            by_trace: table(folder, &mut model)?,
            surprisal: table(folder, &mut model)?,
            difficulty: table(folder, &mut model)?,
            pairs: table(folder, &mut model)?,
            labels: table(folder, &mut model)?,
            runs: table(folder, &mut model)?,
            timings: table(folder, &mut model)?,
            model: String::new(),
        };
        match model {
            Some(model) => Ok(Self { model, ..run }),
            None => Err(Error::NoResults { folder: folder.to_owned() }),
        }
    }

    /// The figure of a check by its name in [`CHECKS`]; `None` where the run has not what it takes, or there is no such check.
    pub fn measure(&self, check: &str) -> Option<Measured> {
        let (_, check) = CHECKS.iter().find(|(name, _)| *name == check)?;
        let lines = check(self);
        (!lines.is_empty()).then(|| Measured { model: self.model.clone(), lines })
    }

    /// Two policies on the same problems of each set, at each budget; `full` has none and meets every budget.
    fn against(&self, a: &str, b: &str) -> Vec<String> {
        let mut by_policy: BTreeMap<Under<'_>, Verdicts<'_>> = BTreeMap::new();
        for run in &self.runs {
            if let Some(correct) = run.correct {
                let key = (run.dataset.as_str(), run.policy.as_str(), run.budget.as_deref());
                by_policy.entry(key).or_default().insert((&run.problem_id, run.sample), correct);
            }
        }
        let mut lines = Vec::new();
        for ((dataset, _, budget), first) in by_policy.iter().filter(|((_, policy, _), _)| *policy == a) {
            let of = |budget| by_policy.get(&(*dataset, b, budget));
            let Some(second) = of(*budget).or_else(|| of(None)) else { continue };
            let pairs: Vec<_> = first.iter().filter_map(|(key, one)| Some((*one, *second.get(key)?))).collect();
            let count = |want: (bool, bool)| pairs.iter().filter(|pair| **pair == want).count() as u64;
            let (both, only_a, only_b) = (count((true, true)), count((true, false)), count((false, true)));
            let p = mcnemar(only_a, only_b).p_exact;
            lines.push(format!(
                "{dataset}, budget {}: {a} {} and {b} {} of {} right, {only_a} only by {a}, {only_b} only by {b}, McNemar exact p {p:.3}{}",
                budget.unwrap_or("none"),
                both + only_a,
                both + only_b,
                pairs.len(),
                if p >= 0.05 { " (not distinguishable)" } else { "" }
            ));
        }
        lines
    }
}

/// A table of a folder, empty where it is not there; notes the model that made it.
fn table<R: Record>(folder: &Path, model: &mut Option<String>) -> Result<Vec<R>> {
    let path = folder.join(format!("{}.parquet", R::table().name));
    if !path.exists() {
        return Ok(Vec::new());
    }
    let (rows, provenance): (Vec<R>, Provenance) = read_table(&path)?;
    let id = provenance.get("model").and_then(|made| made["id"].as_str().map(str::to_owned));
    *model = model.take().or(id).or_else(|| Some("an unnamed model".to_owned()));
    Ok(rows)
}

fn band_rho(run: &Run) -> Vec<String> {
    let mut rho: BTreeMap<(&str, &str), BTreeMap<usize, f64>> = BTreeMap::new();
    let is_own = |row: &&Correlations| (row.source.as_str(), row.signal.as_str(), row.smoothing.as_str()) == STEP;
    for row in run.correlations.iter().filter(is_own) {
        if let Some((layer, value)) = row.layer.and_then(|layer| usize::try_from(layer).ok()).zip(row.rho) {
            rho.entry((&row.dataset, &row.scope)).or_default().insert(layer, value);
        }
    }
    let layers = run.correlations.iter().filter(is_own).filter_map(|row| row.layer);
    let n_layers = layers.max().map_or(0, |last| last as usize + 1);
    let line = |((dataset, scope), of_layers): (&(&str, &str), &BTreeMap<usize, f64>), band: &Band| {
        let rho: Vec<f64> = of_layers.range(band.layers.clone()).map(|(_, rho)| *rho).collect();
        let positive = rho.iter().filter(|rho| **rho > 0.0).count();
        let mean = mean(&rho)?;
        let (n, band) = (rho.len(), band.describe());
        Some(format!("{dataset}, raw, {scope}, {band}: mean rho {mean:+.3}, {positive} of {n} layers positive"))
    };
    let scopes = rho.iter().filter(|((_, scope), _)| ["pooled", "within"].contains(scope));
    scopes.flat_map(|of| Band::both(n_layers).into_iter().filter_map(move |band| line(of, &band))).collect()
}

/// Source, signal and smoothing of the step of the residual stream, as it is recorded.
const STEP: (&str, &str, &str) = ("model", "hs_l2", "raw");

/// Rho by signal and layer.
type ByColumn<'r> = BTreeMap<(&'r str, Option<i16>), f64>;

/// Pooled rho of the model's raw or smoothed columns, by problem set.
fn pooled<'r>(run: &'r Run, smoothing: &str) -> BTreeMap<&'r str, ByColumn<'r>> {
    let mut sets: BTreeMap<&str, ByColumn<'_>> = BTreeMap::new();
    let own = |row: &&Correlations| row.source == "model" && row.scope == "pooled" && row.smoothing == smoothing;
    for row in run.correlations.iter().filter(own) {
        if let Some(rho) = row.rho {
            sets.entry(&row.dataset).or_default().insert((&row.signal, row.layer), rho);
        }
    }
    sets
}

/// The lines of each problem set, which say whose they are.
fn by_set<'r>(sets: BTreeMap<&'r str, ByColumn<'r>>, lines: impl Fn(&ByColumn<'r>) -> Vec<String>) -> Vec<String> {
    let named = |(set, rho): (&str, ByColumn<'r>)| {
        lines(&rho).into_iter().map(move |line| format!("{set}: {line}")).collect::<Vec<_>>()
    };
    sets.into_iter().flat_map(named).collect()
}

fn rotation_gap(run: &Run) -> Vec<String> {
    by_set(pooled(run, "raw"), |raw| {
        let gap = |signal: &str| {
            let before = format!("{signal}_prerope");
            let pairs = raw.iter().filter(|((name, _), _)| *name == signal);
            let gaps = pairs.filter_map(|((_, layer), rho)| Some((rho - raw.get(&(before.as_str(), *layer))?).abs()));
            let gap = gaps.reduce(f64::max)?;
            Some(format!("{signal}: raw rho before and after rotation differs by {gap:.4} at most"))
        };
        ["kv_key_var", "kv_key_norm"].into_iter().filter_map(gap).collect()
    })
}

fn smoothing_ratio(run: &Run) -> Vec<String> {
    let raw = pooled(run, "raw");
    let smoothed = pooled(run, "mean64");
    let line = |(set, smoothed): (&str, ByColumn<'_>)| {
        let pair = |(key, smoothed): (&_, &f64)| Some((raw.get(set)?.get(key)?.abs(), smoothed.abs()));
        let pairs: Vec<(f64, f64)> = smoothed.iter().filter_map(pair).collect();
        let larger = pairs.iter().filter(|(raw, smoothed)| smoothed > raw).count();
        let n = pairs.len();
        (n > 0).then(|| format!("{set}: mean64 has the larger pooled |rho| than raw in {larger} of {n} columns"))
    };
    smoothed.into_iter().filter_map(line).collect()
}

fn cosine_against_step(run: &Run) -> Vec<String> {
    by_set(pooled(run, "raw"), |raw| {
        let steps = raw.iter().filter(|((signal, layer), _)| *signal == "hs_l2" && layer.is_some());
        let pairs = steps.filter_map(|((_, layer), step)| Some((step.abs(), raw.get(&("hs_cos", *layer))?.abs())));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let stronger = pairs.iter().filter(|(step, cosine)| cosine > step).count();
        let line = format!("hs_cos has the larger raw |rho| than hs_l2 at {stronger} of {} layers", pairs.len());
        if pairs.is_empty() { Vec::new() } else { vec![line] }
    })
}

fn attention_rank(run: &Run) -> Vec<String> {
    by_set(pooled(run, "raw"), |raw| {
        let against = |signal: &str| {
            let h2o = raw.get(&(signal, None))?.abs();
            let steps = raw.iter().filter(|((name, _), _)| *name == "hs_l2");
            let (n, weaker) = (steps.clone().count(), steps.filter(|(_, rho)| rho.abs() < h2o).count());
            Some(format!("raw against raw, {weaker} of {n} layers of hs_l2 are weaker than {signal} ({h2o:.3})"))
        };
        ["h2o_attn", "h2o_attn@age=64"].into_iter().filter_map(against).collect()
    })
}

fn position_rho(run: &Run) -> Vec<String> {
    let of_model = run.by_trace.iter().filter(|row| row.source == "model" && row.signal == "hs_l2");
    let mut columns: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for row in of_model {
        if let Some(rho) = row.rho_pos {
            columns.entry((&row.dataset, &row.smoothing)).or_default().push(rho.abs());
        }
    }
    let line = |((dataset, smoothing), rho): ((&str, &str), Vec<f64>)| {
        let mean = mean(&rho)?;
        Some(format!("{dataset}: hs_l2 {smoothing}: mean |rho with position| over layers and traces {mean:.3}"))
    };
    columns.into_iter().filter_map(line).collect()
}

/// `+0.123 [+0.001, +0.234]`; `-` for an interval that is undefined.
fn with_interval(value: f64, bounds: Option<(f64, f64)>) -> String {
    let bounds = bounds.map_or_else(|| "-".to_owned(), |(lo, hi)| format!("{lo:+.3}, {hi:+.3}"));
    format!("{value:+.3} [{bounds}]")
}

fn band_given_surprisal(run: &Run) -> Vec<String> {
    let line = |row: &BandSurprisal| {
        Some(format!(
            "{}: band B within {} traces {}, given the surprisal {}",
            row.dataset,
            row.n_traces,
            with_interval(row.rho?, row.boot_lo.zip(row.boot_hi)),
            with_interval(row.rho_given?, row.given_lo.zip(row.given_hi))
        ))
    };
    run.surprisal.iter().filter_map(line).collect()
}

fn layers_with_difficulty(run: &Run) -> Vec<String> {
    let is_mean = |smoothing: &str| smoothing.starts_with("mean");
    let of_difficulty = run.difficulty.iter().filter(|row| is_mean(&row.smoothing) && row.unit == "trend");
    let of_pairs = run.pairs.iter().filter(|row| is_mean(&row.smoothing) && row.contrast == "trend");
    let trend = of_difficulty.filter_map(|row| {
        Some(format!(
            "{}: the slope of hs_l2 over the layers correlates with difficulty at {} over {} traces, p {:.3}",
            row.dataset,
            with_interval(row.statistic?, row.boot_lo.zip(row.boot_hi)),
            row.n_traces,
            row.p?
        ))
    });
    let pair = of_pairs.map(|row| {
        format!(
            "the slope of hs_l2 over the layers on {} less that on {}: {}, Welch p {:.3}",
            row.group_a,
            row.group_b,
            with_interval(row.difference, row.boot_lo.zip(row.boot_hi)),
            row.p_welch
        )
    });
    trend.chain(pair).collect()
}

fn important_share(run: &Run) -> Vec<String> {
    let mut sets: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for trace in run.labels.iter().filter(|trace| trace.usable) {
        sets.entry(&trace.dataset).or_default().extend(trace.important_share);
    }
    let line = |(dataset, shares): (&str, Vec<f64>)| {
        let mean = mean(&shares)?;
        Some(format!("{dataset}: mean important share of {} traces {mean:.3}", shares.len()))
    };
    sets.into_iter().filter_map(line).collect()
}

fn time_epikv_h2o(run: &Run) -> Vec<String> {
    let mut by_policy: BTreeMap<(&str, Option<&str>), (f64, usize)> = BTreeMap::new();
    for timing in &run.timings {
        let sum = by_policy.entry((&timing.policy, timing.budget.as_deref())).or_default();
        *sum = (sum.0 + timing.wall_s - timing.prefill_s, sum.1 + 1);
    }
    let ratio = |budget: Option<&str>| {
        let (epikv, n) = by_policy.get(&("epikv", budget))?;
        let (h2o, m) = by_policy.get(&("h2o", budget)).filter(|(seconds, _)| *seconds > 0.0)?;
        let budget = budget.unwrap_or("none");
        (n == m).then(|| {
            format!(
                "all problems, budget {budget}: decoding took {:.2} times as long with h2o as with epikv",
                h2o / epikv
            )
        })
    };
    let budgets: std::collections::BTreeSet<Option<&str>> = by_policy.keys().map(|(_, budget)| *budget).collect();
    budgets.into_iter().filter_map(ratio).collect()
}
