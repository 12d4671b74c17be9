//! Logits, residuals, keys, values, attention and greedy tokens.

use epikv_model::backend::DeviceName;
use epikv_model::taps::{ProbePlan, Reduce, TapPoint, Taps};
use serde_json::Value;

use crate::golden::{
    ATTENTION, CASES, DEVICES, LOGITS, RESIDUAL, decoder, distance, full_plan, ids, numbers, run, sequences, values,
};

/// The last token's part of a tap.
fn last(taps: &Taps, point: TapPoint) -> Vec<f32> {
    let tensor = taps.get(point, Reduce::Full).unwrap();
    values(&tensor.narrow(0, tensor.dim(0).unwrap() - 1, 1).unwrap())
}

/// Compares a vector with `values` or `first8`, and its norm with `l2`.
fn check_vector(what: &str, got: &[f32], want: &Value) {
    let head = numbers(want.get("values").unwrap_or(&want["first8"]));
    let worst = distance(&got[..head.len()], &head);
    assert!(worst < RESIDUAL, "{what}: {worst:e}");
    let norm = got.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let l2 = want["l2"].as_f64().unwrap();
    assert!((norm - l2).abs() < RESIDUAL * l2.max(1.0), "{what}: norm {norm} {l2}");
}

/// A tap point of a layer.
type Point = fn(usize) -> TapPoint;

fn check_sequence(case: &str, device: DeviceName, sequence: &Value) {
    let decoder = decoder(case, device);
    let n_layers = decoder.config().n_layers;
    let tokens = ids(&sequence["ids"]);
    let n_logits = sequence["logits_positions"].as_array().unwrap().len();
    let output = run(&decoder, &tokens, n_logits, &full_plan(n_layers));
    let at = format!("{case} on {device}, {} tokens", tokens.len());
    let worst = distance(&values(&output.logits.unwrap()), &numbers(&sequence["logits"]));
    assert!(worst < LOGITS, "{at}: logits {worst:e}");
    check_vector(&format!("{at}: embed"), &last(&output.taps, TapPoint::Embed), &sequence["embed"]);
    check_vector(&format!("{at}: final norm"), &last(&output.taps, TapPoint::FinalNorm), &sequence["final_norm"]);
    for (layer, want) in sequence["resid_post"].as_array().unwrap().iter().enumerate() {
        check_vector(&format!("{at}: block {layer}"), &last(&output.taps, TapPoint::ResidPost(layer)), want);
    }
    for want in sequence.get("resid_step_l2").and_then(Value::as_array).into_iter().flatten() {
        let layer = want["layer"].as_u64().unwrap() as usize;
        let steps = output.taps.step_norms(TapPoint::ResidPost(layer)).unwrap();
        let got = f64::from(steps.last().unwrap().unwrap());
        assert!((got - want["value"].as_f64().unwrap()).abs() < RESIDUAL, "{at}: step of block {layer}");
        assert!(steps[0].is_none() && steps.len() == tokens.len());
    }
    let named: [(&str, Point); 4] = [
        ("key_pre_rope_last", TapPoint::KeyPreRope),
        ("key_post_rope_last", TapPoint::KeyPostRope),
        ("value_last", TapPoint::Value),
        ("query_post_rope_last", TapPoint::QueryPostRope),
    ];
    for (name, point) in named {
        for (layer, want) in sequence.get(name).and_then(Value::as_array).into_iter().flatten().enumerate() {
            let worst = distance(&last(&output.taps, point(layer)), &numbers(want));
            assert!(worst < RESIDUAL, "{at}: {name} of block {layer}: {worst:e}");
        }
    }
    check_attention(&at, &output.taps, sequence, tokens.len());
}

/// Rows of the last token; some files hold layer 0 only.
fn check_attention(at: &str, taps: &Taps, sequence: &Value, n_keys: usize) {
    let heads_of = |rows: &Value| rows[0].is_array();
    let rows = &sequence["attn_last_row"];
    let layers: Vec<&Value> =
        if rows[0].is_array() && heads_of(&rows[0]) { rows.as_array().unwrap().iter().collect() } else { vec![rows] };
    for (layer, want) in layers.into_iter().enumerate() {
        let seen = &taps.attention(layer).unwrap()[0];
        let got: Vec<f32> = seen.iter().flat_map(|head| head.last_rows.clone()).collect();
        assert_eq!(got.len() % n_keys, 0);
        let worst = distance(&got, &numbers(want));
        assert!(worst < ATTENTION, "{at}: attention of block {layer}: {worst:e}");
    }
}

#[test]
fn every_number_of_every_golden_folder() {
    for case in CASES {
        let sequences = sequences(case);
        assert!(!sequences.is_empty());
        for (sequence, device) in sequences.iter().flat_map(|sequence| DEVICES.iter().map(move |d| (sequence, *d))) {
            check_sequence(case, device, sequence);
        }
    }
}

#[test]
fn greedy_tokens_are_equal() {
    use epikv_model::batch::{LogitsOf, RowInput};
    use epikv_model::cache::{Capacity, Scope};
    for (case, device) in CASES.iter().flat_map(|case| DEVICES.iter().map(move |device| (case, *device))) {
        let decoder = decoder(case, device);
        for sequence in sequences(case).iter().filter(|s| s.get("greedy").is_some_and(Value::is_array)) {
            let mut cache = decoder.cache(Scope::Global, Capacity::Growing).unwrap();
            let mut tokens = ids(&sequence["ids"]);
            let mut made = Vec::new();
            for _ in 0..sequence["greedy"].as_array().unwrap().len() {
                let row = RowInput::next(&cache, tokens, LogitsOf::Last);
                let output = decoder.forward(&[row], &mut [&mut cache], &ProbePlan::default()).unwrap();
                let logits = values(&output.logits.unwrap());
                let best = (0..logits.len()).reduce(|a, b| if logits[b] > logits[a] { b } else { a }).unwrap() as u32;
                made.push(best);
                tokens = vec![best];
            }
            assert_eq!(made, ids(&sequence["greedy"]), "{case} on {device}");
        }
    }
}
