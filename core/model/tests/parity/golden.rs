//! What the tests of mutants read of the golden folders. All of their numbers are compared by `examples/run_parity`.

use std::path::PathBuf;

use epikv_model::Tensor;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Scope};
use epikv_model::config::ModelConfig;
use epikv_model::decoder::{Decoder, StepOutput};
use epikv_model::load::{ModelRef, Weights, open};
use epikv_model::taps::ProbePlan;
use serde_json::Value;

/// Tolerances of the golden numbers, several times the largest noise that their makers measured.
pub(crate) const LOGITS: f64 = 3e-4;
pub(crate) const RESIDUAL: f64 = 2e-4;
pub(crate) const ATTENTION: f64 = 5e-5;

/// The folder of a case; those of `parity/` are the models of the parity cases.
pub(crate) fn folder(case: &str) -> PathBuf {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    match case.strip_prefix("parity/") {
        Some(name) => golden.join("parity/models").join(name),
        None => golden.join("model").join(case),
    }
}

pub(crate) fn opened(case: &str) -> (ModelConfig, Weights) {
    let (mut config, weights, _) = open(&ModelRef::Folder(folder(case))).unwrap();
    // The reference enforces no context, and some sequences are longer on purpose.
    config.max_positions = config.max_positions.max(512);
    (config, weights)
}

pub(crate) fn sequences(case: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder(case).join("hf.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all["sequences"].as_array().unwrap().clone()
}

pub(crate) fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

pub(crate) fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// One pass over a whole sequence with logits of the last `n_logits` positions.
pub(crate) fn run(decoder: &Decoder, tokens: &[u32], n_logits: usize, plan: &ProbePlan) -> StepOutput {
    let mut cache = decoder.cache(Scope::Global, Capacity::Growing).unwrap();
    let row = RowInput::next(&cache, tokens.to_vec(), LogitsOf::LastN(n_logits));
    decoder.forward(&[row], &mut [&mut cache], plan).unwrap()
}

/// Largest difference.
pub(crate) fn distance(got: &[f32], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    got.iter().zip(want).map(|(g, w)| (f64::from(*g) - w).abs()).fold(0.0, f64::max)
}
