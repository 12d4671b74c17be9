//! Does one signal rank the same labels better than another?
//!
//! Paired on problems first, which needs no model of the dependence between the two: both are ranked against the labels
//! of the same tokens of a trace, `d_i = atanh(rho_a,i) - atanh(rho_b,i)`, averaged over the traces of a problem, with the
//! bootstrap over problems of the mean, Wilcoxon's signed-rank test and the exact sign-flip test. Beside it stand the three tests for two dependent
//! correlations ([`epikv_stats::dependent`]) on the coefficients within traces and `n` = problems, for comparison with
//! published tables: they were derived for Pearson's r of independent units.
//!
//! Signs count: a signal that ranks important tokens lowest is worse than one that does not rank them at all. A `-` before
//! a name turns its signal around.

use std::fmt;

use epikv_signals::{Smoother, find};
use epikv_stats::dependent::{Test, dependent_correlations};
use epikv_stats::moments::mean;
use epikv_stats::paired::sign_flip_p;
use epikv_stats::pool::clipped_z;
use epikv_stats::signed::signed_rank;
use epikv_stats::{RankScratch, spearman};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::study::column::smooth;
use crate::study::join::Labelled;
use crate::study::pools::{problem_sets, problems};
use crate::study::problems::Problems;
use crate::study::resamples::Resamples;
use crate::study::sample::Sample;
use crate::study::settings::Settings;
use crate::study::tested::p_text;
use crate::study::trace_rho::TraceRho;

/// The score that all others are compared with when nothing was asked for.
const AGAINST: &str = "epikv";

/// A column of a study, as typed: `hs_l2@layer=10@smooth=mean64`, with `-` before it to turn it around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// Signal of the model.
    pub signal: &'static str,
    /// Its layer, 0-based; `None` for the signal of the whole model.
    pub layer: Option<usize>,
    /// How it is smoothed.
    pub smoother: Smoother,
    /// Whether its sign is turned.
    pub negated: bool,
    /// Tokens of the smoother's window, for its name.
    pub window: usize,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negated { "-" } else { "" };
        write!(f, "{sign}{}", self.signal)?;
        if let Some(layer) = self.layer {
            write!(f, "@layer={layer}")?;
        }
        match self.smoother {
            Smoother::Raw => Ok(()),
            smoother => write!(f, "@smooth={}", smoother.name(self.window)),
        }
    }
}

impl Side {
    /// Reads a column; without `@layer` it is the signal of the whole model, without `@smooth` it is raw.
    ///
    /// # Errors
    /// If a part is not known.
    pub fn parse(text: &str, window: usize) -> Result<Self> {
        let text = text.trim();
        let (negated, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let unknown = |part: &str| Error::BadColumn { given: text.to_owned(), part: part.to_owned() };
        let (mut name, mut layer, mut smoother) = (String::new(), None, Smoother::Raw);
        for (at, part) in rest.split('@').enumerate() {
            match part.split_once('=') {
                _ if at == 0 => part.clone_into(&mut name),
                // A part of the signal's own name.
                Some(("age", _)) => name = format!("{name}@{part}"),
                Some(("layer", value)) => layer = Some(value.parse().map_err(|_| unknown(part))?),
                Some(("smooth", value)) => smoother = Smoother::parse(value, window)?,
                _ => return Err(unknown(part)),
            }
        }
        Ok(Self { signal: find(&name)?.spec.name, layer, smoother, negated, window })
    }

    /// That no trace has it.
    pub fn missing(&self) -> Error {
        Error::NotRecordedColumn { given: self.to_string() }
    }

    /// The smoothed series of a trace; `None` where it was not recorded.
    fn series(&self, sample: &Sample, settings: &Settings) -> Result<Option<Vec<Option<f32>>>> {
        let columns = &sample.recording.columns;
        let Some(column) = columns.iter().find(|c| (c.signal, c.layer) == (self.signal, self.layer)) else {
            return Ok(None);
        };
        let mut values = smooth(&column.values, sample.recording.n_prompt, self.smoother, settings)?.into_owned();
        if self.negated {
            values.iter_mut().flatten().for_each(|value| *value = -*value);
        }
        Ok(Some(values))
    }
}

/// Two columns on one problem set. Undefined parts are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The problem set.
    pub dataset: String,
    /// What is compared.
    pub sides: [Side; 2],
    /// Traces at which both coefficients are defined.
    pub n_traces: usize,
    /// Their problems: the units of every figure.
    pub n_problems: usize,
    /// Their tokens at which both are defined.
    pub n_tokens: u64,
    /// Rho within traces of each side with the labels.
    pub rho: [Option<f64>; 2],
    /// Rho within traces between the sides.
    pub rho_between: Option<f64>,
    /// Mean over problems of the difference in Fisher's z, first less second.
    pub difference: Option<f64>,
    /// Its interval by the bootstrap over problems.
    pub interval: Option<(f64, f64)>,
    /// Problems at which the first has the larger coefficient.
    pub n_larger: usize,
    /// Two-sided p-value of Wilcoxon's signed-rank test of the differences.
    pub p_signed_rank: Option<f64>,
    /// Two-sided p-value of the exact sign-flip test; `None` above 40 problems.
    pub p_sign_flip: Option<f64>,
    /// Williams' t on `n_problems`.
    pub williams: Option<Test>,
    /// Meng, Rosenthal and Rubin's z.
    pub meng: Option<Test>,
    /// Steiger's z.
    pub steiger: Option<Test>,
}

/// What is compared when nothing was asked for: every other score of the model against the published one, raw.
pub fn usual_pairs(samples: &[Sample], window: usize) -> Vec<[Side; 2]> {
    let side = |signal| Side { signal, layer: None, smoother: Smoother::Raw, negated: false, window };
    let Some(first) = samples.first() else { return Vec::new() };
    let scores: Vec<&'static str> =
        first.recording.columns.iter().filter(|c| c.layer.is_none()).map(|c| c.signal).collect();
    if !scores.contains(&AGAINST) {
        return Vec::new();
    }
    scores.into_iter().filter(|score| *score != AGAINST).map(|score| [side(score), side(AGAINST)]).collect()
}

/// Compares pairs of columns on every problem set, in order of their names, and on the pools.
///
/// # Errors
/// If a column was not recorded, or the window of the smoothers is empty.
pub fn compare(samples: &[Sample], pairs: &[[Side; 2]], settings: &Settings) -> Result<Vec<Comparison>> {
    let resamples = Resamples::new(settings.seed, settings.replicates);
    let sets = problem_sets(samples, &settings.pools);
    let of = |(dataset, own, pair): &(&String, &Vec<&Sample>, [Side; 2])| {
        let traces = own.par_iter().map(|sample| OfTrace::of(sample, pair, settings)).collect::<Result<Vec<_>>>()?;
        let problems = problems(own).only(|trace| traces[trace].is_some());
        let traces: Vec<OfTrace> = traces.into_iter().flatten().collect();
        Ok(comparison(dataset, *pair, &traces, &problems, &resamples, settings))
    };
    let planned = sets.iter().flat_map(|(name, own)| pairs.iter().map(move |pair| (name, own, *pair)));
    planned.collect::<Vec<_>>().par_iter().map(of).collect()
}

/// The coefficients of one trace.
struct OfTrace {
    n_tokens: u64,
    /// Fisher's z of both sides with the labels, and of the sides with each other.
    z: [f64; 3],
}

impl OfTrace {
    /// `None` where a coefficient is undefined.
    fn of(sample: &Sample, pair: &[Side; 2], settings: &Settings) -> Result<Option<Self>> {
        let series = |side: &Side| side.series(sample, settings)?.ok_or_else(|| side.missing());
        let (a, b) = (series(&pair[0])?, series(&pair[1])?);
        let both = |&(pos, one): &(usize, bool)| Some((a[pos]?, b[pos]?, one));
        let tokens: Vec<(f32, f32, bool)> = sample.mask.tokens().iter().filter_map(both).collect();
        let mut scratch = RankScratch::default();
        let mut rho = |of: fn(&(f32, f32, bool)) -> f32| {
            TraceRho::of(&Labelled::new(tokens.iter().map(|token| (Some(of(token)), token.2))), &mut scratch).ok()
        };
        let found = rho(|token| token.0).zip(rho(|token| token.1));
        let (x, y): (Vec<f64>, Vec<f64>) = tokens.iter().map(|t| (f64::from(t.0), f64::from(t.1))).unzip();
        Ok(found.zip(spearman(&x, &y)).map(|((a, b), between)| Self {
            n_tokens: a.n_tokens,
            z: [a.rho, b.rho, between].map(|rho| clipped_z(rho).0),
        }))
    }
}

fn comparison(
    dataset: &str,
    sides: [Side; 2],
    traces: &[OfTrace],
    problems: &Problems,
    resamples: &Resamples,
    settings: &Settings,
) -> Comparison {
    let of_problems = |of: &dyn Fn(&OfTrace) -> f64| problems.means(&traces.iter().map(of).collect::<Vec<_>>());
    let [a, b, between] = [0, 1, 2].map(|at| mean(&of_problems(&|trace| trace.z[at])).map(f64::tanh));
    let differences = of_problems(&|trace| trace.z[0] - trace.z[1]);
    let difference = mean(&differences);
    let draws = resamples.draws_of_mean(&differences);
    // Clipping before Fisher's z can leave a mean a rounding step outside the range.
    let inside = |rho: Option<f64>| rho.map(|rho| rho.clamp(-1.0, 1.0));
    let tests = inside(a)
        .zip(inside(b))
        .zip(inside(between))
        .and_then(|((a, b), between)| dependent_correlations(a, b, between, problems.len() as u64));
    Comparison {
        dataset: dataset.to_owned(),
        sides,
        n_traces: traces.len(),
        n_problems: problems.len(),
        n_tokens: traces.iter().map(|trace| trace.n_tokens).sum(),
        rho: [a, b],
        rho_between: between,
        difference,
        interval: difference.and_then(|difference| draws.interval(difference, settings.confidence)),
        n_larger: differences.iter().filter(|d| **d > 0.0).count(),
        p_signed_rank: signed_rank(&differences).map(|test| test.p),
        p_sign_flip: if differences.is_empty() { None } else { sign_flip_p(&differences) },
        williams: tests.and_then(|tests| tests.williams),
        meng: tests.and_then(|tests| tests.meng),
        steiger: tests.and_then(|tests| tests.steiger),
    }
}

/// What the page says.
pub fn markdown(comparisons: &[Comparison]) -> String {
    let signed = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:+.3}"));
    let p = |test: Option<Test>| p_text(test.map(|test| test.p));
    let line = |c: &Comparison| {
        let [a, b] = c.sides;
        let interval = c.interval.map_or_else(|| "[-]".to_owned(), |(lo, hi)| format!("[{lo:+.3}, {hi:+.3}]"));
        format!(
            "- {}: {a} ({}) less {b} ({}): z differs by {} {interval} on average over {} problems ({} with {a} above), \
             signed-rank p {}; rho between them {}, with n = problems p {} (Williams), {} (Meng), {} (Steiger)",
            c.dataset,
            signed(c.rho[0]),
            signed(c.rho[1]),
            signed(c.difference),
            c.n_problems,
            c.n_larger,
            p_text(c.p_signed_rank),
            signed(c.rho_between),
            p(c.williams),
            p(c.meng),
            p(c.steiger)
        )
    };
    let lines: Vec<String> = comparisons.iter().filter(|c| c.difference.is_some()).map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("## Signals against each other\n\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_and_named_alike() {
        let read = |text: &str| Side::parse(text, 64).map(|side| side.to_string());
        for text in ["epikv", "-hs_l2@layer=10", "hs_l2@layer=3@smooth=mean64", "-h2o_attn@age=9@smooth=z64"] {
            assert_eq!(read(text).expect("known"), text);
        }
        assert_eq!(read(" hs_l2@smooth=z@layer=3 ").expect("any order"), "hs_l2@layer=3@smooth=z64");
        let error = |text: &str| read(text).expect_err("not known").to_string();
        assert_eq!(
            error("hs_l2@depth=3"),
            "column \"hs_l2@depth=3\": expected SIGNAL, @layer=L and @smooth=S, got \"depth=3\""
        );
        assert!(error("hs_l2@layer=x").contains("got \"layer=x\""));
        assert!(error("hs_l3").contains("unknown signal") && error("epikv@smooth=mean8").contains("mean64"));
    }
}
