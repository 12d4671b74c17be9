//! The golden numbers can fail: a decoder with one typical mistake misses them by at least ten tolerances.

use std::path::Path;

use epikv_model::config::{ModelConfig, RopeScaling};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::Weights;
use epikv_model::source::TensorSource;
use epikv_model::taps::{ProbePlan, Reduce, TapPoint};
use epikv_model::{Device, Result, Tensor};
use serde_json::Value;

use crate::golden::{LOGITS, RESIDUAL, distance, ids, numbers, opened, run, sequences, values};

/// Weights with a change on the way in.
struct Changed {
    weights: Weights,
    change: fn(&str, Tensor, &ModelConfig) -> Tensor,
    config: ModelConfig,
    hide: fn(&str) -> bool,
}

impl TensorSource for Changed {
    fn place(&self) -> &Path {
        self.weights.place()
    }

    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        self.weights.shapes().into_iter().filter(|(name, _)| !(self.hide)(name)).collect()
    }

    fn load(&self, name: &str) -> Result<Tensor> {
        Ok((self.change)(name, self.weights.load(name)?, &self.config))
    }
}

/// Reorders heads so that head `h` reads KV head `h mod n_kv` instead of `h / group`.
fn interleaved_heads(name: &str, tensor: Tensor, config: &ModelConfig) -> Tensor {
    let axis = if name.contains("q_proj") {
        0
    } else if name.contains("o_proj.weight") {
        1
    } else {
        return tensor;
    };
    let (kv, group, d) = (config.n_kv_heads, config.n_heads / config.n_kv_heads, config.head_dim);
    let order = (0..kv).flat_map(|k| (0..group).map(move |g| g * kv + k));
    let parts: Vec<Tensor> = order.map(|h| tensor.narrow(axis, h * d, d).unwrap()).collect();
    Tensor::cat(&parts, axis).unwrap()
}

/// Whether a decoder misses the longest sequence of a case by ten tolerances.
fn misses(decoder: &Decoder, sequence: &Value) -> bool {
    let n = sequence["logits_positions"].as_array().unwrap().len();
    let output = run(decoder, &ids(&sequence["ids"]), n, &ProbePlan::default());
    distance(&values(&output.logits.unwrap()), &numbers(&sequence["logits"])) > 10.0 * LOGITS
}

fn check(
    case: &str,
    edit: fn(&mut ModelConfig),
    change: fn(&str, Tensor, &ModelConfig) -> Tensor,
    hide: fn(&str) -> bool,
) {
    let (mut config, weights) = opened(case);
    let sequence = sequences(case).into_iter().max_by_key(|s| ids(&s["ids"]).len()).unwrap();
    let whole = Decoder::load(config.clone(), &*weights, &Device::Cpu, WeightFormat::F32).unwrap();
    assert!(!misses(&whole, &sequence), "{case}: the unchanged decoder");
    let source = Changed { weights, change, config: config.clone(), hide };
    edit(&mut config);
    let mutant = Decoder::load(config, &source, &Device::Cpu, WeightFormat::F32).unwrap();
    assert!(misses(&mutant, &sequence), "{case}: the mutant goes unnoticed");
}

fn as_is(_: &str, tensor: Tensor, _: &ModelConfig) -> Tensor {
    tensor
}

fn nothing(_: &str) -> bool {
    false
}

#[test]
fn without_rope_scaling() {
    for case in ["parity/llama", "llama-llama3-rope", "llama-linear-rope"] {
        check(case, |c| c.rope_scaling = RopeScaling::Default, as_is, nothing);
    }
}

#[test]
fn with_another_eps() {
    for case in ["qwen2", "qwen3", "llama-untied-gqa", "llama-tied-mha"] {
        let other = |c: &mut ModelConfig| c.rms_norm_eps = if c.rms_norm_eps > 5e-6 { 1e-6 } else { 1e-5 };
        check(case, other, as_is, nothing);
    }
}

#[test]
fn with_the_heads_mapped_in_turn() {
    for case in ["parity/llama", "parity/qwen2", "qwen2", "qwen3", "llama-untied-gqa"] {
        check(case, |_| {}, interleaved_heads, nothing);
    }
}

#[test]
fn without_biases() {
    for case in ["parity/qwen2", "qwen2"] {
        check(case, |c| c.qkv_bias = false, as_is, |name| name.ends_with("_proj.bias"));
    }
}

#[test]
fn without_the_norms_of_q_and_k() {
    check("qwen3", |c| c.qk_norm = false, as_is, |name| name.contains("q_norm") || name.contains("k_norm"));
}

#[test]
fn with_the_last_tap_after_the_norm() {
    for case in ["parity/llama", "qwen2", "qwen3", "llama-mqa"] {
        let (config, weights) = opened(case);
        let last = config.n_layers - 1;
        let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).unwrap();
        for sequence in sequences(case) {
            let plan = ProbePlan::default().tap(TapPoint::FinalNorm, Reduce::Full);
            let output = run(&decoder, &ids(&sequence["ids"]), 1, &plan);
            let normed = output.taps.get(TapPoint::FinalNorm, Reduce::Full).unwrap();
            let got = values(&normed.narrow(0, normed.dim(0).unwrap() - 1, 1).unwrap());
            let want = &sequence["resid_post"][last];
            let want = numbers(want.get("values").unwrap_or(&want["first8"]));
            assert!(distance(&got[..want.len()], &want) > 10.0 * RESIDUAL, "{case}");
        }
    }
}
