//! Every signal against numbers computed the plain way from what Transformers records: `tests/golden/signals`.

use std::path::PathBuf;

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::{ModelRef, open};
use epikv_signals::{Chunk, SIGNALS, Signal, find};
use serde_json::Value;

/// Relative to the larger of the value and 1. The forward passes differ by 1e-6 or so; a z-score divides by a deviation
/// that can be small.
const TOLERANCE: f64 = 2e-4;

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn values(decoder: &Decoder, signal: &mut dyn Signal, ids: &[u32]) -> Vec<Option<f32>> {
    let mut cache = decoder.cache(Scope::Global, Capacity::Growing).expect("a cache");
    let mut all = Vec::new();
    for part in ids.chunks(77) {
        let input = RowInput::next(&cache, part.to_vec(), LogitsOf::None);
        let output = decoder.forward(&[input], &mut [&mut cache], &signal.plan()).expect("a pass");
        all.extend(signal.push(&Chunk::new(&output.taps, 0..part.len())).expect("what the plan asks for"));
    }
    all
}

fn compare(case: &str, name: &str, got: &[Option<f32>], positions: &Value, want: &Value) {
    let positions = positions.as_array().expect("positions").iter().map(|p| p.as_u64().expect("a position") as usize);
    for (pos, want) in positions.zip(want.as_array().expect("values")) {
        match (got[pos].map(f64::from), want.as_f64()) {
            (Some(got), Some(want)) => assert!(
                (got - want).abs() <= TOLERANCE * want.abs().max(1.0),
                "{case}: {name} at {pos}: got {got}, want {want}"
            ),
            (got, want) => assert_eq!(got, want, "{case}: {name} at {pos}"),
        }
    }
}

#[test]
fn every_signal_equals_its_formula_over_the_reference_pass() {
    for case in ["llama-untied-gqa", "qwen3"] {
        let text = std::fs::read_to_string(golden().join("signals").join(format!("{case}.json"))).expect("a file");
        let golden_values: Value = serde_json::from_str(&text).expect("JSON");
        let ids: Vec<u32> =
            golden_values["ids"].as_array().expect("ids").iter().map(|id| id.as_u64().expect("an id") as u32).collect();
        let (config, weights, _) = open(&ModelRef::Folder(golden().join("model").join(case))).expect("a model");
        let n_layers = config.n_layers;
        let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit");
        let ages = ["h2o_attn@age=0", "h2o_attn@age=5", "h2o_attn@age=200"].map(|name| find(name).expect("any age"));
        for row in SIGNALS.iter().chain(ages) {
            let name = row.spec.name;
            let Ok(built) = row.all(n_layers) else {
                assert!(golden_values["model"][name].is_null(), "{case}: {name} is too deep for the model");
                continue;
            };
            if let Some(mut late) = row.late(n_layers).expect("layers") {
                let mut cache = decoder.cache(Scope::Global, Capacity::Growing).expect("a cache");
                for part in ids.chunks(77) {
                    let input = RowInput::next(&cache, part.to_vec(), LogitsOf::None);
                    let output = decoder.forward(&[input], &mut [&mut cache], &late.plan()).expect("a pass");
                    late.push(&Chunk::new(&output.taps, 0..part.len())).expect("what the plan asks for");
                }
                let want = &golden_values["late"][name];
                assert!(want.is_array(), "{case}: no golden numbers of {name}");
                compare(case, name, &late.finish(), &golden_values["positions"], want);
                assert!(late.finish().is_empty(), "{name}: nothing is remembered");
            }
            for (layer, mut signal) in built {
                let want = match layer {
                    Some(layer) => &golden_values["per_layer"][name][layer],
                    None => &golden_values["model"][name],
                };
                assert!(want.is_array(), "{case}: no golden numbers of {name}, layer {layer:?}");
                let got = values(&decoder, &mut *signal, &ids);
                compare(case, name, &got, &golden_values["positions"], want);
            }
        }
    }
}
