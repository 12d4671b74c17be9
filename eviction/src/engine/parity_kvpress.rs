//! Prompts cut by presses of NVIDIA's kvpress, then decoded greedily: kept sets, tokens, margins, logits.
//!
//! The numbers are in `tests/golden/kvpress_runs.json`, the script that took them over is beside it. A press keeps
//! `floor(200 (1 - ratio))` of 200 prompt tokens; those of `rerotate_*` then stand at positions counted again.

use std::path::Path;

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::Capacity;
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::{ModelRef, open};
use epikv_model::sampler::RandomStream;
use epikv_signals::{Chunk, Setup};
use serde_json::Value;

use crate::engine::evictor::Evictor;
use crate::policy::limits::Limits;
use crate::policy::parse::NamedPolicy;

/// Tolerance of logits and margins, several times the noise that the makers of the reference measured.
const LOGITS: f64 = 3e-4;

/// The composition that a press is.
fn policy_of(press: &str) -> NamedPolicy {
    let parts = match press {
        "knorm" => "k-norm;protect=nothing;trigger=prefill",
        "keydiff" => "key-diff;protect=nothing;trigger=prefill",
        "tova" => "tova;protect=recency(1);trigger=prefill",
        "streaming_llm" => "streaming-llm;position=logical;trigger=prefill",
        "rerotate_knorm" => "k-norm;protect=nothing;trigger=prefill;position=compacted",
        "rerotate_streaming" => "streaming-llm;trigger=prefill",
        "snapkv" => "snapkv;score=snapkv(window64+mean5);protect=recency(64)",
        "snapkv_w16_k7" => "snapkv;score=snapkv(window16+mean7);protect=recency(16)",
        "lagkv_default" => "lag-kv;protect=nothing;trigger=prefill",
        "lagkv_lag32" => "lag-kv;score=lag-kv(32);protect=nothing;trigger=prefill",
        _ => panic!("{press}"),
    };
    parts.parse().expect("a policy")
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().expect("a list").iter().map(|id| id.as_u64().expect("an id") as u32).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
}

fn check(decoder: &Decoder, prompt: &[u32], run: &Value) {
    let press = run["press"].as_str().expect("a name");
    let name = format!("{press} at {}", run["ratio"]);
    let policy = policy_of(press).policy;
    let budget = run["n_kept"].as_u64().expect("a count") as usize;
    let limits = Limits::new(budget, prompt.len(), policy.protect).expect("feasible");
    let stream = RandomStream { seed: 0, problem: 0, sample: 0 };
    let n_layers = decoder.config().n_layers;
    let setup = Setup { recency: limits.recency(), stream, ..Setup::new(n_layers) };
    let mut evictor = Evictor::new(&policy, &limits, stream, policy.score.start(&setup).expect("a score"));
    let cache = decoder.cache(policy.scope, Capacity::Growing).expect("a cache");
    let mut cache = cache.with_rotation(policy.position.rotation()).expect("empty");
    let plan = policy.score.plan(n_layers).expect("deep enough");
    let mut next = prompt.to_vec();
    let fed = ids(&run["fed"]);
    for (step, (&token, margin)) in fed.iter().zip(numbers(&run["margin"])).enumerate() {
        let n = next.len();
        let input = RowInput::next(&cache, next, LogitsOf::Last);
        let output = decoder.forward(&[input], &mut [&mut cache], &plan).expect("a pass");
        let logits = output.logits.expect("wanted");
        let logits = logits.flatten_all().and_then(|l| l.to_vec1::<f32>()).expect("f32");
        if step == 1 {
            for (got, want) in logits.iter().zip(numbers(&run["after_first"])) {
                assert!((f64::from(*got) - want).abs() < LOGITS, "{name}: {got} and {want}");
            }
        }
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        assert_eq!(order[0] as u32, token, "{name}, step {step}");
        let got = f64::from(logits[order[0]] - logits[order[1]]);
        assert!((got - margin).abs() < LOGITS, "{name}, step {step}: {got} and {margin}");
        evictor.push(&Chunk::new(&output.taps, 0..n), &cache, step == 0).expect("no taps are needed");
        evictor.evict(&mut cache);
        if step == 0 {
            for layer in 0..n_layers {
                for head in 0..decoder.config().n_kv_heads {
                    let held: Vec<u32> = cache.set_of(layer, head).positions().map(|pos| pos.0).collect();
                    assert_eq!(held, ids(&run["kept"][layer][head]), "{name}, layer {layer}, head {head}");
                }
            }
        }
        next = vec![token];
    }
}

#[test]
fn prompts_are_cut_as_kvpress_cuts_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = epikv_schemas::fs::read_text(&folder.join("tests/golden/kvpress_runs.json"), 1 << 24).expect("numbers");
    let reference: Value = serde_json::from_str(&text).expect("JSON");
    let model = ModelRef::Folder(folder.join("../tests/golden/model/parity/llama"));
    let (mut config, weights, _) = open(&model).expect("the parity model");
    config.max_positions = config.max_positions.max(512);
    let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit");
    let (prompt, runs) = (ids(&reference["prompt"]), reference["runs"].as_array().expect("runs"));
    assert_eq!(runs.len(), 20);
    for run in runs {
        check(&decoder, &prompt, run);
    }
}
