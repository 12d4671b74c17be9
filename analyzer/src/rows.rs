//! From findings and recordings to rows of the record files.

use std::sync::Arc;

use epikv_schemas::{
    BandSurprisal, ComparisonRow, Correlations, CorrelationsByLag, CorrelationsByTrace, DifficultyRow, EnrichmentRow,
    GroupPair, HeterogeneityRow, PerLayer, SignalsAge, SignalsAttn, SignalsHs, SignalsKv, SignalsScore, SignalsToken,
};

use epikv_signals::Smoother;
use epikv_stats::heterogeneity::Heterogeneity;
use epikv_stats::moments::mean;
use epikv_stats::pool::clipped_z;
use epikv_stats::{FisherMethod, fisher_interval};

use crate::between_groups::{BetweenGroups, Pair, Spread, What};
use crate::compare::Comparison;
use crate::correlate::{Correlation, Figure};
use crate::difficulty::{Unit, WithDifficulty};
use crate::enrichment::Enrichment;
use crate::findings::{DatasetFindings, Finding, TraceShape};
use crate::groups::Contrast;
use crate::lags::LagRho;
use crate::predictable::GivenSurprisal;
use crate::record::{Column, Recording};
use crate::study::Settings;

/// Interval of rho within traces, as the files name it.
const STUDENT_T: &str = "student-t";

/// The age that has a column of its own.
const AGE_64: &str = "h2o_attn@age=64";

/// Rows of `correlations`.
pub fn correlations(found: &[DatasetFindings], settings: &Settings) -> Vec<Correlations> {
    let rows =
        |d: &DatasetFindings| d.findings.iter().flat_map(|f| scopes(&d.dataset, f, settings)).collect::<Vec<_>>();
    found.iter().flat_map(rows).collect()
}

/// The rows of a column: tokens, windows where there are labels of them, and traces.
fn scopes(dataset: &str, finding: &Finding, settings: &Settings) -> Vec<Correlations> {
    let all = &finding.correlation;
    let row = |scope, of: &Correlation, figure| row(dataset, finding, settings, scope, of, figure);
    let mut within = row("within", all, &all.within);
    within.rho_partial_pos = mean_of_traces(finding, |shape| shape.rho_partial);
    within.rho_stratified = mean_of_traces(finding, |shape| shape.rho_stratified);
    let mut rows = vec![row("pooled", all, &all.pooled), within];
    if let Some(windows) = &finding.windows {
        rows.push(row("window_pooled", windows, &windows.pooled));
        rows.push(row("window_within", windows, &windows.within));
    }
    let n = all.n_between as i32;
    rows.push(Correlations {
        n_tokens: i64::from(n),
        n_eff: n,
        excl_short: all.n_traces as i32 - n,
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

/// A coefficient of every trace, pooled in Fisher's z with equal weights; `None` if no trace has it.
fn mean_of_traces(finding: &Finding, of: fn(&TraceShape) -> Option<f64>) -> Option<f64> {
    let z: Vec<f64> = finding.shapes.iter().filter_map(of).map(|rho| clipped_z(rho).0).collect();
    mean(&z).map(f64::tanh)
}

/// Rows of `correlations_by_trace`.
pub fn correlations_by_trace(found: &[DatasetFindings], window: usize) -> Vec<CorrelationsByTrace> {
    let mut rows = Vec::new();
    // The traces of pooled sets are there already.
    for dataset in found.iter().filter(|dataset| !dataset.is_pooled) {
        for finding in &dataset.findings {
            let traces = dataset.trace_ids.iter().zip(&finding.correlation.by_trace).zip(&finding.shapes);
            rows.extend(traces.map(|((trace_id, rho), shape)| CorrelationsByTrace {
                trace_id: trace_id.clone(),
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

/// Rows of `comparisons`.
pub fn comparisons(found: &[Comparison]) -> Vec<ComparisonRow> {
    let row = |c: &Comparison| ComparisonRow {
        dataset: c.dataset.clone(),
        column_a: c.sides[0].to_string(),
        column_b: c.sides[1].to_string(),
        n_traces: c.n_traces as i32,
        n_tokens: c.n_tokens as i64,
        rho_a: c.rho[0],
        rho_b: c.rho[1],
        rho_ab: c.rho_between,
        difference: c.difference,
        boot_lo: c.interval.map(|i| i.0),
        boot_hi: c.interval.map(|i| i.1),
        n_larger: c.n_larger as i32,
        p_signed_rank: c.p_signed_rank,
        p_sign_flip: c.p_sign_flip,
        williams_t: c.williams.map(|t| t.statistic),
        williams_p: c.williams.map(|t| t.p),
        meng_z: c.meng.map(|t| t.statistic),
        meng_p: c.meng.map(|t| t.p),
        steiger_z: c.steiger.map(|t| t.statistic),
        steiger_p: c.steiger.map(|t| t.p),
    };
    found.iter().map(row).collect()
}

/// Rows of `enrichment`.
pub fn enrichment(found: &[Enrichment]) -> Vec<EnrichmentRow> {
    let row = |e: &Enrichment| EnrichmentRow {
        dataset: e.dataset.clone(),
        set: e.set.to_owned(),
        column: e.column.clone(),
        class: e.class.name().to_owned(),
        n_traces: e.n_traces as i32,
        n_tokens: e.n_tokens as i64,
        n_class: e.n_class as i64,
        n_set: e.n_set as i64,
        n_both: e.n_both as i64,
        expected: e.expected,
        ratio: e.ratio(),
        p_cross: e.tested.p_cross,
        p_shift: e.tested.p_shift,
        z_null: e.tested.z_null,
        q_bh: e.tested.q_bh,
    };
    found.iter().map(row).collect()
}

/// Rows of `band_surprisal`.
pub fn band_surprisal(found: &[GivenSurprisal], settings: &Settings) -> Vec<BandSurprisal> {
    let row = |given: &GivenSurprisal| BandSurprisal {
        dataset: given.dataset.clone(),
        smoothing: Smoother::Mean.name(settings.window),
        n_traces: given.n_traces as i32,
        rho: given.rho,
        boot_lo: given.interval.map(|i| i.0),
        boot_hi: given.interval.map(|i| i.1),
        rho_given: given.given,
        given_lo: given.given_interval.map(|i| i.0),
        given_hi: given.given_interval.map(|i| i.1),
    };
    found.iter().map(row).collect()
}

/// Rows of `difficulty`.
pub fn difficulty(found: &[WithDifficulty]) -> Vec<DifficultyRow> {
    let row = |d: &WithDifficulty| {
        let (unit, layer) = match d.unit {
            Unit::Interaction => ("interaction", None),
            Unit::Layer(layer) => ("layer", Some(layer as i16)),
            Unit::Contrast(contrast) => (contrast.name(), None),
        };
        DifficultyRow {
            dataset: d.dataset.clone(),
            smoothing: d.smoothing.clone(),
            unit: unit.to_owned(),
            layer,
            n_traces: d.n_traces as i32,
            statistic: d.statistic,
            boot_lo: d.interval.map(|i| i.0),
            boot_hi: d.interval.map(|i| i.1),
            p: d.p,
            p_maxt: d.p_maxt,
        }
    };
    found.iter().map(row).collect()
}

/// What is compared between groups, as the files name it.
fn contrast(what: &What) -> String {
    what.contrast.map_or("column", Contrast::name).to_owned()
}

/// Rows of `heterogeneity`.
pub fn heterogeneity(found: &BetweenGroups) -> Vec<HeterogeneityRow> {
    let row = |spread: &Spread| {
        let Heterogeneity { n_groups, q, p, i_squared, tau2, mean, lo, hi } = spread.found;
        HeterogeneityRow {
            groups: spread.set.clone(),
            signal: spread.what.column.signal.clone(),
            layer: spread.what.column.layer,
            smoothing: spread.what.column.smoothing.clone(),
            contrast: contrast(&spread.what),
            n_groups: n_groups as i32,
            q,
            p,
            i_squared,
            tau2,
            mean_z: mean,
            z_lo: lo,
            z_hi: hi,
            rho: mean.tanh(),
        }
    };
    found.spreads.iter().map(row).collect()
}

/// Rows of `group_pairs`.
pub fn group_pairs(found: &BetweenGroups) -> Vec<GroupPair> {
    let row = |pair: &Pair| GroupPair {
        signal: pair.what.column.signal.clone(),
        layer: pair.what.column.layer,
        smoothing: pair.what.column.smoothing.clone(),
        contrast: contrast(&pair.what),
        group_a: pair.groups[0].clone(),
        group_b: pair.groups[1].clone(),
        n_a: pair.n[0] as i32,
        n_b: pair.n[1] as i32,
        mean_a: pair.means[0],
        mean_b: pair.means[1],
        difference: pair.found.difference,
        se: pair.found.se,
        p_welch: pair.found.p,
        boot_lo: pair.interval.map(|i| i.0),
        boot_hi: pair.interval.map(|i| i.1),
    };
    found.pairs.iter().map(row).collect()
}

/// Rows of `signals_hs`; `None` if no such signal was recorded.
pub fn signals_hs(recordings: &[&Recording]) -> Option<Vec<SignalsHs>> {
    of_layers(recordings, ["hs_l2", "hs_cos", "hs_norm"], |trace_id, pos, token_id, [hs_l2, hs_cos, hs_norm]| {
        SignalsHs { trace_id, pos, token_id, hs_l2, hs_cos, hs_norm }
    })
}

/// Rows of `signals_kv`; `None` if no such signal was recorded.
pub fn signals_kv(recordings: &[&Recording]) -> Option<Vec<SignalsKv>> {
    const SIGNALS: [&str; 11] = [
        "kv_key_var",
        "kv_val_var",
        "kv_key_norm",
        "kv_key_var_prerope",
        "kv_key_norm_prerope",
        "kv_val_norm",
        "kv_val_range",
        "cross_head_var",
        "lag_key",
        "lag_val",
        "key_diff",
    ];
    let late: Vec<Option<f32>> = recordings
        .iter()
        .flat_map(|recording| {
            let column = of_model_column(recording, "lag_next");
            (0..recording.token_ids.len()).map(move |at| column.and_then(|column| column.values[at]))
        })
        .collect();
    let mut late = late.into_iter();
    of_layers(recordings, SIGNALS, |trace_id, pos, token_id, values| {
        let [
            kv_key_var,
            kv_val_var,
            kv_key_norm,
            kv_key_var_prerope,
            kv_key_norm_prerope,
            kv_val_norm,
            kv_val_range,
            cross_head_var,
            lag_key,
            lag_val,
            key_diff,
        ] = values;
        SignalsKv {
            trace_id,
            pos,
            token_id,
            kv_key_var,
            kv_val_var,
            kv_key_norm,
            kv_key_var_prerope,
            kv_key_norm_prerope,
            kv_val_norm,
            kv_val_range,
            cross_head_var,
            lag_key,
            lag_val,
            key_diff,
            lag_next: late.next().flatten(),
        }
    })
}

/// Rows of `signals_token`; `None` if no such signal was recorded.
pub fn signals_token(recordings: &[&Recording]) -> Option<Vec<SignalsToken>> {
    of_model(recordings, ["surprisal", "entropy", "margin", "embed_l2"], |trace_id, pos, token_id, values| {
        let [surprisal, entropy, margin, embed_l2] = values;
        SignalsToken { trace_id, pos, token_id, surprisal, entropy, margin, embed_l2 }
    })
}

/// Rows of `signals_attn`; `None` if no such signal was recorded.
pub fn signals_attn(recordings: &[&Recording]) -> Option<Vec<SignalsAttn>> {
    let mut rows = Vec::new();
    for recording in recordings {
        let received = ["h2o_attn", AGE_64, "attn_last"].map(|signal| of_model_column(recording, signal));
        let layers = families(recording, ["attn_entropy", "attn_distance"]);
        if layers.is_none() && received.iter().all(Option::is_none) {
            return None;
        }
        let layers = layers.unwrap_or_default();
        for (pos, token_id) in tokens(recording) {
            let at = pos as usize;
            let of_layers = |family: &[PerLayer]| family.get(at).cloned().unwrap_or_else(no_layers);
            let [h2o_attn, h2o_attn_age64, attn_last] = received.map(|column| column.and_then(|c| c.values[at]));
            rows.push(SignalsAttn {
                trace_id: recording.trace_id.clone(),
                pos,
                token_id,
                attn_entropy: of_layers(&layers[0]),
                attn_distance: of_layers(&layers[1]),
                h2o_attn,
                h2o_attn_age64,
                attn_last,
            });
        }
    }
    Some(rows)
}

/// Rows of `signals_age`; `None` if no other age than that of `signals_attn` was recorded.
pub fn signals_age(recordings: &[&Recording]) -> Option<Vec<SignalsAge>> {
    let mut rows = Vec::new();
    for recording in recordings {
        for column in recording.columns.iter().filter(|column| column.signal != AGE_64) {
            let Some(age) = column.signal.strip_prefix("h2o_attn@age=").and_then(|age| age.parse().ok()) else {
                continue;
            };
            let row = |(pos, &h2o_attn): (usize, &Option<f32>)| SignalsAge {
                trace_id: recording.trace_id.clone(),
                age,
                pos: pos as i32,
                h2o_attn,
            };
            rows.extend(column.values.iter().enumerate().map(row));
        }
    }
    (!rows.is_empty()).then_some(rows)
}

/// Rows of `signals_score`; `None` if no such signal was recorded.
pub fn signals_score(recordings: &[&Recording]) -> Option<Vec<SignalsScore>> {
    const SIGNALS: [&str; 9] =
        ["epikv", "epikv_raw", "epikv_a", "epikv_b", "band_adaptive", "kv_key", "kv_val", "lag_kv_key", "lag_kv"];
    of_model(recordings, SIGNALS, |trace_id, pos, token_id, values| {
        let [epikv, epikv_raw, epikv_a, epikv_b, band_adaptive, kv_key, kv_val, lag_kv_key, lag_kv] = values;
        SignalsScore {
            trace_id,
            pos,
            token_id,
            epikv,
            epikv_raw,
            epikv_a,
            epikv_b,
            band_adaptive,
            kv_key,
            kv_val,
            lag_kv_key,
            lag_kv,
        }
    })
}

/// Rows of a table whose signals have a value a layer.
fn of_layers<R, const N: usize>(
    recordings: &[&Recording],
    signals: [&str; N],
    mut row: impl FnMut(String, i32, i32, [PerLayer; N]) -> R,
) -> Option<Vec<R>> {
    let mut rows = Vec::new();
    for recording in recordings {
        let mut families = families(recording, signals)?.map(Vec::into_iter);
        for (pos, token_id) in tokens(recording) {
            let values = families.each_mut().map(Iterator::next);
            let values = values.map(|value| value.unwrap_or_else(no_layers));
            rows.push(row(recording.trace_id.clone(), pos, token_id, values));
        }
    }
    Some(rows)
}

/// Rows of a table whose signals have one value a token.
fn of_model<R, const N: usize>(
    recordings: &[&Recording],
    signals: [&str; N],
    row: impl Fn(String, i32, i32, [Option<f32>; N]) -> R,
) -> Option<Vec<R>> {
    let mut rows = Vec::new();
    for recording in recordings {
        let columns = signals.map(|signal| of_model_column(recording, signal));
        if columns.iter().all(Option::is_none) {
            return None;
        }
        rows.extend(tokens(recording).enumerate().map(|(at, (pos, token_id))| {
            let values = columns.map(|column| column.and_then(|column| column.values[at]));
            row(recording.trace_id.clone(), pos, token_id, values)
        }));
    }
    Some(rows)
}

/// The column of a signal that has one value a token.
fn of_model_column<'r>(recording: &'r Recording, signal: &str) -> Option<&'r Column> {
    recording.columns.iter().find(|column| column.signal == signal && column.layer.is_none())
}

/// What stands for a signal that was not recorded.
fn no_layers() -> PerLayer {
    PerLayer::new(Arc::new([]), Vec::new())
}

fn tokens(recording: &Recording) -> impl Iterator<Item = (i32, i32)> + '_ {
    recording.token_ids.iter().enumerate().map(|(pos, &id)| (pos as i32, id as i32))
}

/// The values of each token at all layers, by signal; `None` if none of the signals was recorded at all.
fn families<const N: usize>(recording: &Recording, signals: [&str; N]) -> Option<[Vec<PerLayer>; N]> {
    let own = |signal: &str| -> Vec<(u16, &Column)> {
        let layers = recording.columns.iter().filter(|column| column.signal == signal);
        layers.filter_map(|column| Some((column.layer? as u16, column))).collect()
    };
    let families = signals.map(own);
    let rows = |columns: &Vec<(u16, &Column)>| -> Vec<PerLayer> {
        let layers: Arc<[u16]> = columns.iter().map(|(layer, _)| *layer).collect();
        let of = |pos: usize| columns.iter().map(|(_, column)| column.values[pos]).collect();
        (0..recording.token_ids.len()).map(|pos| PerLayer::new(Arc::clone(&layers), of(pos))).collect()
    };
    families.iter().any(|family| !family.is_empty()).then(|| families.each_ref().map(rows))
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

    #[test]
    fn a_family_that_was_not_recorded_has_no_columns() {
        let column = |signal, layer, value| Column { signal, layer: Some(layer), values: vec![None, Some(value)] };
        let recording = Recording {
            trace_id: "t".to_owned(),
            token_ids: vec![5, 6],
            n_prompt: 1,
            columns: vec![column("kv_key_var", 0, 1.0), column("kv_key_var", 1, 2.0)],
        };
        assert!(signals_hs(&[&recording]).is_none());
        let rows = signals_kv(&[&recording]).expect("keys");
        assert_eq!((rows.len(), rows[1].pos, rows[1].token_id), (2, 1, 6));
        assert_eq!((rows[1].kv_key_var.get(1), rows[0].kv_key_var.get(1)), (Some(2.0), None));
        assert!(rows[1].kv_val_var.layers().is_empty());
    }
}
