//! Rows of recorded signals, one a token.

use std::sync::Arc;

use epikv_schemas::{PerLayer, SignalsAge, SignalsAttn, SignalsHs, SignalsKv, SignalsScore, SignalsToken};

use crate::record::{Column, Recording};

/// The age that has a column of its own, since `@` and `=` stand in no name of a column, and that column.
const AGE_64: &str = "h2o_attn@age=64";
const AGE_64_COLUMN: &str = "h2o_attn_age64";

/// What stands before the age in the name of a signal.
const AGED: &str = "h2o_attn@age=";

/// The signal that a column of numbers holds; in `signals_age` the age is a column of its own.
pub(crate) fn signal_of_column(column: &'static str) -> &'static str {
    if column == AGE_64_COLUMN { AGE_64 } else { column }
}

/// The signal of the rows of an age in `signals_age`; `None` for an age that no signal has.
pub(crate) fn signal_of_age(age: i32) -> Option<&'static str> {
    epikv_signals::find(&format!("{AGED}{age}")).ok().map(|row| row.spec.name)
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
            let Some(age) = column.signal.strip_prefix(AGED).and_then(|age| age.parse().ok()) else {
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
    use epikv_schemas::{Kind, Record};

    use super::*;

    #[test]
    fn every_column_holds_a_signal_and_the_age_of_64_has_one() {
        let tables = [SignalsHs::table(), SignalsKv::table(), SignalsToken::table(), SignalsAttn::table()];
        let columns = tables.into_iter().chain([SignalsScore::table()]).flat_map(|table| table.columns);
        let signals: Vec<&str> =
            columns.filter(|column| column.kind == Kind::F32).map(|column| signal_of_column(column.name)).collect();
        assert!(signals.contains(&AGE_64));
        for signal in signals {
            assert!(epikv_signals::SIGNALS.iter().any(|row| row.spec.name == signal), "{signal}");
        }
        assert_eq!((signal_of_age(16), signal_of_age(-1)), (Some("h2o_attn@age=16"), None));
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
