//! GGUF files: the same logits and greedy tokens as the dequantised weights in Transformers.

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::{ModelRef, open};
use epikv_model::taps::{ProbePlan, Reduce, TapPoint};
use serde_json::Value;

use crate::golden::{LOGITS, distance, folder, ids, numbers, values};

fn decoder(path: std::path::PathBuf) -> Decoder {
    let (mut config, weights, _) = open(&ModelRef::Gguf(path)).unwrap();
    config.max_positions = config.max_positions.max(512);
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).unwrap()
}

/// Logits of the last `n` tokens and the greedy continuation.
fn greedy(decoder: &Decoder, tokens: &[u32], n: usize, n_new: usize) -> (Vec<f32>, Vec<u32>) {
    let mut cache = decoder.cache(Scope::Global, Capacity::Growing).unwrap();
    let (mut next, mut first, mut made) = (tokens.to_vec(), Vec::new(), Vec::new());
    for step in 0..n_new.max(1) {
        let row = RowInput::next(&cache, next, LogitsOf::LastN(if step == 0 { n } else { 1 }));
        let output = decoder.forward(&[row], &mut [&mut cache], &ProbePlan::default()).unwrap();
        let logits = values(&output.logits.unwrap());
        let last = &logits[logits.len() - decoder.config().vocab_size..];
        let best = (0..last.len()).reduce(|a, b| if last[b] > last[a] { b } else { a }).unwrap() as u32;
        made.push(best);
        next = vec![best];
        if step == 0 {
            first = logits;
        }
    }
    (first, made)
}

#[test]
fn every_quantisation_runs_as_its_dequantised_weights() {
    let text = std::fs::read_to_string(folder("gguf.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let mut n = 0;
    for (name, file) in all["files"].as_object().unwrap() {
        let Some(forward) = file.get("forward").filter(|f| f.is_object()) else { continue };
        let tokens = ids(&forward["ids"]);
        let want = numbers(&forward["logits_last"]);
        let decoder = decoder(folder("gguf").join(name));
        let want_greedy = ids(&forward["greedy"]);
        let (logits, made) = greedy(&decoder, &tokens, 1, want_greedy.len());
        let worst = distance(&logits[..want.len()], &want);
        assert!(worst < LOGITS, "{name}: {worst:e}");
        assert_eq!(made, want_greedy, "{name}");
        n += 1;
    }
    assert!(n >= 12, "{n} files");
}

/// A real model, where somebody has put it: see docs/real-model.md.
#[test]
fn smollm2_runs_as_in_transformers() {
    let path = folder("../../../scratch/SmolLM2-135M-Instruct.gguf");
    if !path.exists() {
        #[expect(clippy::print_stderr, reason = "a skipped test says why")]
        {
            eprintln!(
                "skipped: scratch/SmolLM2-135M-Instruct.gguf is not there (docs/real-model.md says where it comes from)"
            );
        }
        return;
    }
    let text = std::fs::read_to_string(folder("smollm2_forward.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let forward = &all["forward"];
    let decoder = decoder(path);
    let tokens = ids(&forward["ids"]);
    let (logits, made) = greedy(&decoder, &tokens, 1, forward["greedy"].as_array().unwrap().len());
    let want = numbers(&forward["logits_first8"]);
    let worst = distance(&logits[..8], &want);
    assert!(worst < LOGITS, "{worst:e}");
    assert_eq!(made, ids(&forward["greedy"]));
    let mut cache = decoder.cache(Scope::Global, Capacity::Growing).unwrap();
    let plan =
        (0..decoder.config().n_layers).fold(ProbePlan::default(), |p, l| p.tap(TapPoint::ResidPost(l), Reduce::Norm));
    let row = RowInput::next(&cache, tokens, LogitsOf::None);
    let taps = decoder.forward(&[row], &mut [&mut cache], &plan).unwrap().taps;
    for (layer, want) in forward["resid_post_l2"].as_array().unwrap().iter().enumerate() {
        let norms = values(taps.get(TapPoint::ResidPost(layer), Reduce::Norm).unwrap());
        let (got, want) = (f64::from(norms[norms.len() - 1]), want.as_f64().unwrap());
        assert!((got / want - 1.0).abs() < 1e-4, "block {layer}: {got} {want}");
    }
}
