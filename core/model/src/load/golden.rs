//! Tests against files that other programs wrote: folders of Transformers and GGUF files of the `gguf` package, with the
//! dequantised values that the latter computes.

use std::path::PathBuf;

use serde_json::Value;

use super::{ModelRef, Weights, hf_config, json_fields, open};
use crate::config::{ModelConfig, RopeScaling};

/// Values are written with nine digits; dequantisation multiplies the same numbers in the same order up to one rounding.
const RELATIVE: f64 = 1e-6;

const FOLDERS: [&str; 12] = [
    "llama-bf16",
    "llama-linear-rope",
    "llama-llama3-rope",
    "llama-mqa",
    "llama-theta-500000",
    "llama-tied-mha",
    "llama-untied-gqa",
    "qwen2",
    "qwen2-f16",
    "qwen3",
    "qwen3-sharded",
    "qwen3-tied",
];

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/model").join(name)
}

fn values(weights: &Weights, name: &str) -> Vec<f32> {
    weights.load(name).unwrap().to_dtype(candle_core::DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn assert_near(got: &[f32], expected: &Value, what: &str) {
    let expected = numbers(expected);
    assert_eq!(got.len(), expected.len(), "{what}");
    for (&got, expected) in got.iter().zip(expected) {
        let error = (f64::from(got) - expected).abs();
        assert!(error <= RELATIVE * expected.abs() + 1e-9, "{what}: got {got}, expected {expected}");
    }
}

#[test]
fn folders_of_transformers_open_and_both_config_styles_agree() {
    for name in FOLDERS {
        let folder = golden(name);
        let (config, weights, origin) = open(&ModelRef::Folder(folder.clone())).unwrap();
        assert_eq!(origin.id(), name);
        for (tensor, shape) in config.tensors() {
            assert_eq!(weights.load(&tensor).unwrap().dims(), shape, "{name} {tensor}");
        }
        let legacy = folder.join("config.legacy.json");
        if legacy.exists() {
            let copy = tempfile::tempdir().unwrap();
            std::fs::copy(legacy, copy.path().join(hf_config::CONFIG)).unwrap();
            let generation = hf_config::GENERATION_CONFIG;
            if folder.join(generation).exists() {
                std::fs::copy(folder.join(generation), copy.path().join(generation)).unwrap();
            }
            assert_eq!(hf_config::read(&copy.path().into()).unwrap(), config, "{name}");
        }
    }
}

#[test]
fn gguf_files_give_the_values_of_the_reference_dequantiser() {
    let all = json_fields::read_object(&golden("").as_path().into(), "gguf.json").unwrap();
    for (file, expected) in all["files"].as_object().unwrap() {
        let (_, weights, _) = open(&ModelRef::Gguf(golden("gguf").join(file))).unwrap();
        for tensor in expected["tensors"].as_array().unwrap().iter().filter(|tensor| !tensor["hf"].is_null()) {
            let name = tensor["hf"].as_str().unwrap();
            let loaded = weights.load(name).unwrap();
            let shape: Vec<f64> = loaded.dims().iter().map(|&size| size as f64).collect();
            assert_eq!(shape, numbers(&tensor["shape"]), "{file} {name}");
            let got = values(&weights, name);
            let what = format!("{file} {name}");
            assert_near(&got[..got.len().min(16)], &tensor["first16"], &what);
            assert_near(&got[got.len().saturating_sub(8)..], &tensor["last8"], &what);
            if let Some(row) = tensor.get("row1") {
                let columns = loaded.dims()[1];
                assert_near(&got[columns..columns + row.as_array().unwrap().len()], row, &what);
            }
            let l2 = got.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt();
            let expected = tensor["l2"].as_f64().unwrap();
            assert!((l2 - expected).abs() <= 1e-5 * expected, "{what}: l2 {l2}, expected {expected}");
        }
    }
}

/// What the decoder needs; ids are in the tokenizer part of a GGUF file, which most of these leave out.
fn shape(config: &ModelConfig) -> ModelConfig {
    ModelConfig { bos_id: None, eos_ids: Vec::new(), pad_id: None, ..config.clone() }
}

#[test]
fn a_gguf_file_has_the_configuration_of_its_folder() {
    let all = json_fields::read_object(&golden("").as_path().into(), "gguf.json").unwrap();
    let mut scaled = 0;
    for (file, expected) in all["files"].as_object().unwrap() {
        let folder = golden(expected["source"].as_str().unwrap());
        let (config, weights, _) = open(&ModelRef::Gguf(golden("gguf").join(file))).unwrap();
        if !folder.exists() {
            continue;
        }
        let (of_folder, folder_weights, _) = open(&ModelRef::Folder(folder)).unwrap();
        assert_eq!(shape(&config), shape(&of_folder), "{file}");
        scaled += usize::from(config.rope_scaling != RopeScaling::Default);
        if file.ends_with("f32.gguf") {
            for (name, _) in config.tensors() {
                assert_eq!(values(&weights, &name), values(&folder_weights, &name), "{file} {name}");
            }
        }
    }
    assert_eq!(scaled, 2, "the linear and the llama3 file");
}
