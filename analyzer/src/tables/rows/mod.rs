//! Rows of the record files, from findings and recordings.

mod beside;
mod recorded;

use epikv_schemas::{Correlations, CorrelationsByLag, CorrelationsByTrace};
use epikv_stats::moments::mean;
use epikv_stats::pool::clipped_z;
use epikv_stats::{FisherMethod, fisher_interval};

use crate::study::correlate::{Correlation, Figure};
use crate::study::findings::{DatasetFindings, Finding, TraceShape};
use crate::study::lags::LagRho;
use crate::study::problems::Problems;
use crate::study::settings::Settings;

pub use beside::{band_surprisal, comparisons, difficulty, enrichment, group_pairs, heterogeneity};
pub(crate) use recorded::{signal_of_age, signal_of_column};
pub use recorded::{signals_age, signals_attn, signals_hs, signals_kv, signals_score, signals_token};

/// Interval of rho within traces, as the files name it.
const STUDENT_T: &str = "student-t";

/// Rows of `correlations`.
pub fn correlations(found: &[DatasetFindings], settings: &Settings) -> Vec<Correlations> {
    let rows = |d: &DatasetFindings| d.findings.iter().flat_map(|f| scopes(d, f, settings)).collect::<Vec<_>>();
    found.iter().flat_map(rows).collect()
}

/// The rows of a column: tokens, windows where there are labels of them, and traces.
fn scopes(set: &DatasetFindings, finding: &Finding, settings: &Settings) -> Vec<Correlations> {
    let (all, problems) = (&finding.correlation, &set.problems);
    let row = |scope, of: &Correlation, figure| row(&set.dataset, finding, settings, scope, of, figure);
    let mut within = row("within", all, &all.within);
    within.rho_partial_pos = mean_of_problems(finding, problems, |shape| shape.rho_partial);
    within.rho_stratified = mean_of_problems(finding, problems, |shape| shape.rho_stratified);
    let mut rows = vec![row("pooled", all, &all.pooled), within];
    if let Some(windows) = &finding.windows {
        rows.push(row("window_pooled", windows, &windows.pooled));
        rows.push(row("window_within", windows, &windows.within));
    }
    let n = all.n_between as i32;
    let n_traces = finding.shapes.iter().filter(|shape| shape.n > 0).count();
    rows.push(Correlations {
        n_tokens: i64::from(n),
        n_problems: Some(n),
        n_traces: Some(n_traces as i32),
        n_eff: n,
        excl_short: (all.n_traces - n_traces) as i32,
        excl_constant_label: 0,
        excl_constant_signal: 0,
        excl_undefined: 0,
        base_rate: None,
        rho_cap: None,
        ..row("between", all, &all.between)
    });
    rows
}

/// One row: what every scope has, and what the pooled or the within ones have besides.
fn row(
    dataset: &str,
    finding: &Finding,
    settings: &Settings,
    scope: &str,
    of: &Correlation,
    figure: &Figure,
) -> Correlations {
    let is_within = scope.ends_with("within");
    let n = if scope == "between" { of.n_between } else { of.n_eff };
    let fisher = |method| {
        let rho = figure.rho.filter(|_| !is_within)?;
        let interval = fisher_interval(rho, n as u64, settings.confidence, method);
        Some((interval.lo, interval.hi))
    };
    let bounds = |method| fisher(method).unwrap_or_default();
    let (fisher_lo, fisher_hi) = bounds(FisherMethod::Plain);
    let (fieller_lo, fieller_hi) = bounds(FisherMethod::Fieller);
    let (bonett_wright_lo, bonett_wright_hi) = bounds(FisherMethod::BonettWright);
    let random = of.random_effects.filter(|_| is_within);
    Correlations {
        dataset: dataset.to_owned(),
        source: finding.source.name().to_owned(),
        signal: finding.signal.to_owned(),
        layer: finding.layer.map(|layer| layer as i16),
        smoothing: finding.smoother.name(settings.window),
        scope: scope.to_owned(),
        n_tokens: of.n_tokens as i64,
        n_traces_total: of.n_traces as i32,
        n_problems: Some(of.n_eff as i32),
        n_traces: Some(of.n_usable as i32),
        n_eff: of.n_eff as i32,
        excl_short: of.n_short as i32,
        excl_constant_label: of.n_constant_label as i32,
        excl_constant_signal: of.n_constant_signal as i32,
        excl_undefined: of.n_undefined as i64,
        base_rate: of.base_rate,
        rho: figure.rho,
        auc: figure.auc,
        rank_biserial: figure.rank_biserial(),
        ci_method: if is_within { STUDENT_T } else { settings.fisher.name() }.to_owned(),
        ci_level: settings.confidence.level(),
        ci_lo: figure.ci_lo,
        ci_hi: figure.ci_hi,
        boot_lo: figure.boot_lo,
        boot_hi: figure.boot_hi,
        boot_n: figure.n_draws as i32,
        rho_cap: of.base_rate.and_then(|p| largest_rho(p, of.n_tokens)),
        fisher_lo,
        fisher_hi,
        fieller_lo,
        fieller_hi,
        bonett_wright_lo,
        bonett_wright_hi,
        rho_random: random.map(|r| r.rho),
        random_lo: random.and_then(|r| r.lo),
        random_hi: random.and_then(|r| r.hi),
        rho_partial_pos: None,
        rho_stratified: None,
        p_cross: figure.tested.p_cross,
        p_shift: figure.tested.p_shift,
        null_sd: figure.tested.null_sd,
        z_null: figure.tested.z_null,
        p_maxt: figure.tested.p_maxt,
        q_bh: figure.tested.q_bh,
        rho_median_trace: of.rho_median_trace.filter(|_| is_within),
        share_positive: of.share_positive.filter(|_| is_within),
        k_clipped: if is_within { of.k_clipped as i32 } else { 0 },
    }
}

/// The |rho| of a signal without ties that separates `n` tokens at base rate `p` perfectly: `sqrt(3 p (1-p) n^2/(n^2-1))`.
fn largest_rho(p: f64, n: u64) -> Option<f64> {
    let n = n as f64;
    (n > 1.0 && p > 0.0 && p < 1.0).then(|| (3.0 * p * (1.0 - p) * n * n / (n * n - 1.0)).sqrt())
}

/// A coefficient of every trace, pooled in Fisher's z with equal weights of the problems; `None` if no trace has it.
fn mean_of_problems(finding: &Finding, problems: &Problems, of: fn(&TraceShape) -> Option<f64>) -> Option<f64> {
    let z: Vec<Option<f64>> = finding.shapes.iter().map(|shape| of(shape).map(|rho| clipped_z(rho).0)).collect();
    mean(&problems.means_of_defined(&z).into_iter().flatten().collect::<Vec<_>>()).map(f64::tanh)
}

/// Rows of `correlations_by_trace`.
pub fn correlations_by_trace(found: &[DatasetFindings], window: usize) -> Vec<CorrelationsByTrace> {
    let mut rows = Vec::new();
    // The traces of pooled sets are there already.
    for dataset in found.iter().filter(|dataset| !dataset.is_pooled) {
        for finding in &dataset.findings {
            let ids = dataset.trace_ids.iter().zip(&dataset.problem_ids);
            let traces = ids.zip(&finding.correlation.by_trace).zip(&finding.shapes);
            rows.extend(traces.map(|(((trace_id, problem_id), rho), shape)| CorrelationsByTrace {
                trace_id: trace_id.clone(),
                problem_id: Some(problem_id.clone()),
                dataset: dataset.dataset.clone(),
                source: finding.source.name().to_owned(),
                signal: finding.signal.to_owned(),
                layer: finding.layer.map(|layer| layer as i16),
                smoothing: finding.smoother.name(window),
                n: shape.n as i32,
                m: shape.n_important as i32,
                rho: rho.ok().map(|t| t.rho),
                auc: rho.ok().map(|t| t.auc),
                rho_pos: shape.rho_position,
                lag1: shape.lag1,
                rho_partial_pos: shape.rho_partial,
                rho_stratified: shape.rho_stratified,
                reason: rho.err().map(|reason| reason.name().to_owned()),
            }));
        }
    }
    rows
}

/// Rows of `correlations_by_lag`.
pub fn correlations_by_lag(found: &[DatasetFindings], window: usize) -> Vec<CorrelationsByLag> {
    let of_finding = |dataset: &DatasetFindings, finding: &Finding| -> Vec<CorrelationsByLag> {
        let row = |at: &LagRho| CorrelationsByLag {
            dataset: dataset.dataset.clone(),
            signal: finding.signal.to_owned(),
            layer: finding.layer.map(|layer| layer as i16),
            smoothing: finding.smoother.name(window),
            lag: at.lag,
            n_tokens: at.n_tokens as i64,
            n_eff: at.n_eff as i32,
            rho: at.rho,
        };
        finding.lags.iter().map(row).collect()
    };
    found.iter().flat_map(|d| d.findings.iter().flat_map(move |f| of_finding(d, f))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_is_what_perfect_separation_gives() {
        let signal: Vec<f32> = (0..10_u8).map(f32::from).collect();
        let important: Vec<bool> = (0..10).map(|i| i >= 7).collect();
        let ranks = epikv_stats::BinaryRanks::from_f32(&signal, &important, &mut epikv_stats::RankScratch::default());
        let rho = ranks.and_then(|r| r.rho()).expect("defined");
        assert!((largest_rho(0.3, 10).expect("defined") - rho).abs() < 1e-14);
        assert_eq!((largest_rho(0.0, 10), largest_rho(0.5, 1)), (None, None));
    }
}
