//! From findings and recordings to rows of the record files.

use std::sync::Arc;

use epikv_schemas::{Correlations, CorrelationsByTrace, PerLayer, SignalsHs, SignalsKv};

use crate::correlate::Figure;
use crate::findings::{DatasetFindings, Finding};
use crate::record::{Column, Recording};
use crate::study::Settings;

/// Interval of rho within traces, as the files name it.
const STUDENT_T: &str = "student-t";

/// Rows of `correlations`.
pub fn correlations(found: &[DatasetFindings], settings: &Settings) -> Vec<Correlations> {
    let rows = |d: &DatasetFindings| d.findings.iter().flat_map(|f| both(&d.dataset, f, settings)).collect::<Vec<_>>();
    found.iter().flat_map(rows).collect()
}

fn both(dataset: &str, finding: &Finding, settings: &Settings) -> [Correlations; 2] {
    let all = &finding.correlation;
    let row = |scope: &str, method: &str, figure: &Figure| Correlations {
        dataset: dataset.to_owned(),
        source: finding.source.name().to_owned(),
        signal: finding.signal.to_owned(),
        layer: finding.layer.map(|layer| layer as i16),
        smoothing: finding.smoother.name(settings.window),
        scope: scope.to_owned(),
        n_tokens: all.n_tokens as i64,
        n_traces_total: all.n_traces as i32,
        n_eff: all.n_eff as i32,
        excl_short: all.n_short as i32,
        excl_constant_label: all.n_constant_label as i32,
        excl_constant_signal: all.n_constant_signal as i32,
        excl_undefined: all.n_undefined as i64,
        base_rate: all.base_rate,
        rho: figure.rho,
        auc: figure.auc,
        rank_biserial: figure.rank_biserial(),
        ci_method: method.to_owned(),
        ci_level: settings.confidence.level(),
        ci_lo: figure.ci_lo,
        ci_hi: figure.ci_hi,
        boot_lo: figure.boot_lo,
        boot_hi: figure.boot_hi,
        boot_n: figure.draws.n_defined() as i32,
        rho_median_trace: None,
        share_positive: None,
        k_clipped: 0,
    };
    let pooled = row("pooled", settings.fisher.name(), &all.pooled);
    let within = Correlations {
        rho_median_trace: all.rho_median_trace,
        share_positive: all.share_positive,
        k_clipped: all.k_clipped as i32,
        ..row("within", STUDENT_T, &all.within)
    };
    [pooled, within]
}

/// Rows of `correlations_by_trace`.
pub fn correlations_by_trace(found: &[DatasetFindings], window: usize) -> Vec<CorrelationsByTrace> {
    let mut rows = Vec::new();
    for dataset in found {
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
                reason: rho.err().map(|reason| reason.name().to_owned()),
            }));
        }
    }
    rows
}

/// Rows of `signals_hs`; `None` if no such signal was recorded.
pub fn signals_hs(recordings: &[&Recording]) -> Option<Vec<SignalsHs>> {
    let mut rows = Vec::new();
    for recording in recordings {
        let [hs_l2] = families(recording, ["hs_l2"])?;
        rows.extend(tokens(recording).zip(hs_l2).map(|((pos, token_id), hs_l2)| SignalsHs {
            trace_id: recording.trace_id.clone(),
            pos,
            token_id,
            hs_l2,
        }));
    }
    Some(rows)
}

/// Rows of `signals_kv`; `None` if no such signal was recorded.
pub fn signals_kv(recordings: &[&Recording]) -> Option<Vec<SignalsKv>> {
    let mut rows = Vec::new();
    for recording in recordings {
        let [key, value] = families(recording, ["kv_key_var", "kv_val_var"])?;
        rows.extend(tokens(recording).zip(key.into_iter().zip(value)).map(|((pos, token_id), (key, value))| {
            SignalsKv { trace_id: recording.trace_id.clone(), pos, token_id, kv_key_var: key, kv_val_var: value }
        }));
    }
    Some(rows)
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
