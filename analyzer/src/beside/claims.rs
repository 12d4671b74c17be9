//! The figures for each claim, read from the files of a run.

use std::collections::BTreeMap;
use std::path::Path;

use epikv_schemas::{
    BandSurprisal, Correlations, CorrelationsByTrace, DifficultyRow, EvictionRun, EvictionTiming, GroupPair,
    LabelTrace, Provenance, Record, read_table,
};
use epikv_stats::Confidence;
use epikv_stats::mcnemar::mcnemar;
use epikv_stats::moments::mean;
use epikv_stats::paired::paired_difference;
use epikv_stats::tango::tango;
use serde::Serialize;

use crate::beside::claim_verdict::{Part, Says};
use crate::error::{Error, Result};
use crate::study::bands::Band;

/// A figure in words, and the model that it was measured on.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// The model.
    pub model: String,
    /// The figure, a line each.
    pub lines: Vec<String>,
    /// The parts that decide the claim; empty where the figure has no interval.
    pub parts: Vec<Part>,
}

/// From a run to the lines of a figure, and the parts that decide the claim; none where the run has not what it takes.
pub type Check = fn(&Run) -> (Vec<String>, Vec<Part>);

/// Share of right answers within which two policies count as alike.
const ALIKE: f64 = 0.05;

/// The figures by the names that claims use.
pub const CHECKS: &[(&str, Check)] = &[
    ("band_rho", |run| (band_rho(run), Vec::new())),
    ("position_rho", |run| (position_rho(run), Vec::new())),
    ("rotation_gap", |run| (rotation_gap(run), Vec::new())),
    ("smoothing_ratio", |run| (smoothing_ratio(run), Vec::new())),
    ("cosine_against_step", |run| (cosine_against_step(run), Vec::new())),
    ("attention_rank", |run| (attention_rank(run), Vec::new())),
    ("band_given_surprisal", |run| (band_given_surprisal(run), Vec::new())),
    ("layers_with_difficulty", |run| (layers_with_difficulty(run), Vec::new())),
    ("epikv_against_raw", |run| run.against("epikv", "epikv-raw", Says::Above(0.0))),
    ("h2o_against_full", |run| run.against("h2o", "full", Says::Below(0.0))),
    ("epikv_against_h2o", |run| run.against("epikv", "h2o", Says::Above(0.0))),
    ("epikv_against_window", |run| run.against("epikv", "window", Says::Above(0.0))),
    ("h2o_rewound_against_logical", |run| run.against("h2o;position=rewound", "h2o", Says::Below(0.0))),
    ("raas_against_full", |run| run.against("raas", "full", Says::Within(ALIKE))),
    ("r_kv_against_snapkv", |run| run.against("r-kv", "snapkv-decode", Says::Above(0.0))),
    ("vase_against_r_kv", |run| run.against("vase", "r-kv", Says::Above(0.0))),
    ("vase_with_reserve", |run| run.against("vase", "vase;select=draw", Says::Above(0.0))),
    ("vase_with_draws", |run| run.against("vase", "vase;select=top-k+values(25%)", Says::Above(0.0))),
    ("important_share", |run| (important_share(run), Vec::new())),
    ("time_lag_kv_raas", |run| (times(run, "lag-kv", "raas"), Vec::new())),
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
        let (lines, parts) = check(self);
        (!lines.is_empty()).then(|| Measured { model: self.model.clone(), lines, parts })
    }

    /// Two policies on the same problems of each set, at each budget; `full` has none and meets every budget. The unit is
    /// the problem, with the tests that `epikv evict` uses.
    fn against(&self, a: &str, b: &str, says: Says) -> (Vec<String>, Vec<Part>) {
        let mut by_policy: BTreeMap<Under<'_>, Verdicts<'_>> = BTreeMap::new();
        for run in &self.runs {
            if let Some(correct) = run.correct {
                let key = (run.dataset.as_str(), run.policy.as_str(), run.budget.as_deref());
                by_policy.entry(key).or_default().insert((&run.problem_id, run.sample), correct);
            }
        }
        let (mut lines, mut parts) = (Vec::new(), Vec::new());
        for ((dataset, _, budget), first) in by_policy.iter().filter(|((_, policy, _), _)| *policy == a) {
            let of = |budget| by_policy.get(&(*dataset, b, budget));
            let Some(second) = of(*budget).or_else(|| of(None)) else { continue };
            let mut problems: BTreeMap<&str, Vec<(bool, bool)>> = BTreeMap::new();
            for (key, one) in first {
                if let Some(other) = second.get(key) {
                    problems.entry(key.0).or_default().push((*one, *other));
                }
            }
            let Some(Paired { wins, losses, both, n, test, p, lo, hi }) = Paired::of(&problems) else { continue };
            let difference = (wins as f64 - losses as f64) / n as f64;
            lines.push(format!(
                "{dataset}, budget {}: {a} {} and {b} {} of {n} right over {} problems, {wins} only by {a}, {losses} only by \
                 {b}, difference {difference:+.3} [{lo:+.3}, {hi:+.3}], {test} p {}",
                budget.unwrap_or("none"),
                both + wins,
                both + losses,
                problems.len(),
                exact_p_text(p),
            ));
            parts.push(Part {
                estimate: difference,
                lo,
                hi,
                p: Some(p).filter(|_| !matches!(says, Says::Within(_))),
                says,
            });
        }
        (lines, parts)
    }
}

/// Two policies on the same problems.
struct Paired {
    n: u64,
    both: u64,
    wins: u64,
    losses: u64,
    test: &'static str,
    p: f64,
    lo: f64,
    hi: f64,
}

impl Paired {
    /// Exact `McNemar` and Tango's interval for one run a problem; for more the exact sign flip of the differences of the
    /// problems (a paired t test where it cannot be enumerated), and Student's t on them, no narrower than Tango's interval
    /// for so many problems without a discordant one. `None` without a pair, or for one problem of several runs.
    fn of(problems: &BTreeMap<&str, Vec<(bool, bool)>>) -> Option<Self> {
        let count = |want: (bool, bool)| problems.values().flatten().filter(|pair| **pair == want).count() as u64;
        let (both, wins, losses) = (count((true, true)), count((true, false)), count((false, true)));
        let n = problems.values().map(Vec::len).sum::<usize>() as u64;
        if n > 0 && problems.values().all(|runs| runs.len() == 1) {
            let (lo, hi) = tango(wins, losses, n, Confidence::P95)?;
            return Some(Self {
                n,
                both,
                wins,
                losses,
                test: "exact McNemar",
                p: mcnemar(wins, losses).p_exact,
                lo,
                hi,
            });
        }
        let share = |of: fn(&(bool, bool)) -> bool| -> Vec<f64> {
            let right = |runs: &Vec<(bool, bool)>| runs.iter().filter(|pair| of(pair)).count() as f64;
            problems.values().map(|runs| right(runs) / runs.len() as f64).collect()
        };
        let found = paired_difference(&share(|pair| pair.0), &share(|pair| pair.1))?;
        let (test, p) = match found.p_signflip_exact {
            Some(p) => ("exact sign flip", p),
            None => ("paired t", found.p_t?),
        };
        let half = Confidence::P95.t(problems.len() as f64 - 1.0)? * found.se?;
        let (least, most) = tango(0, 0, problems.len() as u64, Confidence::P95)?;
        let (lo, hi) = (found.mean_diff - half, found.mean_diff + half);
        let (lo, hi) = (lo.min(found.mean_diff + least).max(-1.0), hi.max(found.mean_diff + most).min(1.0));
        Some(Self { n, both, wins, losses, test, p, lo, hi })
    }
}

/// An exact p-value, which is never written as 0.
fn exact_p_text(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
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
        Some(format!("{dataset}, mean64, {scope}, {band}: mean rho {mean:+.3}, {positive} of {n} layers positive"))
    };
    let scopes = rho.iter().filter(|((_, scope), _)| ["pooled", "within"].contains(scope));
    scopes.flat_map(|of| Band::both(n_layers).into_iter().filter_map(move |band| line(of, &band))).collect()
}

/// Source, signal and smoothing of the step of the residual stream, as published: a rolling mean of 64.
const STEP: (&str, &str, &str) = ("model", "hs_l2", "mean64");

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

/// How many times as long decoding took with the second policy as with the first.
fn times(run: &Run, fast: &str, slow: &str) -> Vec<String> {
    let mut by_policy: BTreeMap<(&str, Option<&str>), (f64, usize)> = BTreeMap::new();
    for timing in &run.timings {
        let sum = by_policy.entry((&timing.policy, timing.budget.as_deref())).or_default();
        *sum = (sum.0 + timing.wall_s - timing.prefill_s, sum.1 + 1);
    }
    let ratio = |budget: Option<&str>| {
        let (first, n) = by_policy.get(&(fast, budget)).filter(|(seconds, _)| *seconds > 0.0)?;
        let (second, m) = by_policy.get(&(slow, budget))?;
        let budget = budget.unwrap_or("none");
        (n == m).then(|| {
            format!(
                "all problems, budget {budget}: decoding took {:.2} times as long with {slow} as with {fast}",
                second / first
            )
        })
    };
    let budgets: std::collections::BTreeSet<Option<&str>> = by_policy.keys().map(|(_, budget)| *budget).collect();
    budgets.into_iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_problem_are_no_independent_pairs() {
        // Four problems of eight samples each, all won: as pairs McNemar says 2^-31, as problems it is 2 / 2^4.
        let names = ["a", "b", "c", "d"];
        let problems: BTreeMap<&str, Vec<(bool, bool)>> = names.map(|name| (name, vec![(true, false); 8])).into();
        let found = Paired::of(&problems).expect("four problems");
        assert_eq!((found.n, found.wins, found.losses, found.test), (32, 32, 0, "exact sign flip"));
        assert!((found.p - 0.125).abs() < 1e-15 && found.lo < found.hi, "{}", found.p);
        let once: BTreeMap<&str, Vec<(bool, bool)>> = names.map(|name| (name, vec![(true, false)])).into();
        let found = Paired::of(&once).expect("four pairs");
        assert_eq!((found.test, (found.p - 0.125).abs() < 1e-15), ("exact McNemar", true));
        assert_eq!([exact_p_text(0.0), exact_p_text(0.125)], ["< 0.0001", "0.1250"]);
    }
}
