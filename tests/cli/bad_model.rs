//! Broken model folders and files: what is wrong is named, at once.

use std::path::{Path, PathBuf};

use crate::support::{Place, Ran, bytes};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/model").join(name)
}

/// Copies a golden model folder here, with a tokenizer beside it where one is named.
fn model(place: &Place, case: &str, tokenizer: Option<&str>) -> PathBuf {
    let folder = place.path("model");
    std::fs::create_dir_all(&folder).unwrap();
    let tokenizer = tokenizer.map(|t| golden("tokenizers").join(t));
    for from in [Some(golden(case)), tokenizer].into_iter().flatten() {
        for entry in from.read_dir().unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    }
    folder
}

fn trace(place: &Place) -> Ran {
    place.problems();
    place.epikv(&["trace", "--model", "model", "--problems", "problems.jsonl", "--out", "out.parquet", "--quiet"])
}

#[test]
fn missing_tensors_are_all_listed() {
    let place = Place::new();
    let config = model(&place, "llama-tied-mha", None).join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let layers = serde_json::from_str::<serde_json::Value>(&text).unwrap()["num_hidden_layers"].as_u64().unwrap();
    let more =
        text.replace(&format!("\"num_hidden_layers\": {layers}"), &format!("\"num_hidden_layers\": {}", layers + 1));
    std::fs::write(&config, more).unwrap();
    let last = format!("model.layers.{layers}.mlp.down_proj.weight is missing");
    trace(&place).refused(&["9 tensors do not fit", &last]);
}

#[test]
fn misshapen_and_unexpected_tensors_are_listed() {
    let place = Place::new();
    let config = model(&place, "qwen2", None).join("config.json");
    let text = std::fs::read_to_string(&config).unwrap().replace("\"qwen2\"", "\"llama\"").replace("Qwen2", "Llama");
    std::fs::write(&config, text).unwrap();
    trace(&place).refused(&["q_proj.bias is unexpected"]);
}

#[test]
fn cut_weights_are_damaged() {
    for at in [3, 100, 5_000] {
        let place = Place::new();
        let weights = model(&place, "llama-mqa", None).join("model.safetensors");
        let whole = std::fs::read(&weights).unwrap();
        std::fs::write(&weights, &whole[..at]).unwrap();
        trace(&place).refused(&["model.safetensors", "expected", "got"]);
        assert!(!place.path("out.parquet").exists());
    }
}

#[test]
fn a_cut_gguf_file_is_damaged() {
    let place = Place::new();
    place.problems();
    let whole = std::fs::read(golden("gguf/llama-f32.gguf")).unwrap();
    for at in [2, 30, 900, whole.len() - 7] {
        place.write("cut.gguf", &whole[..at]);
        let run = ["trace", "--model", "cut.gguf", "--problems", "problems.jsonl", "--out", "out.parquet", "--quiet"];
        place.epikv(&run).refused(&["cut.gguf"]);
    }
}

#[test]
fn a_folder_without_a_tokenizer() {
    let place = Place::new();
    model(&place, "llama-mqa", None);
    trace(&place).refused(&["tokenizer.json", "hint: weights and tokenizer must come from the same model"]);
}

#[test]
fn a_folder_without_weights_or_with_a_folder_of_their_name() {
    let place = Place::new();
    let weights = model(&place, "llama-mqa", None).join("model.safetensors");
    std::fs::remove_file(&weights).unwrap();
    trace(&place).refused(&["weights: expected model.safetensors", "got neither", "hint: put the .safetensors files"]);
    std::fs::create_dir(&weights).unwrap();
    trace(&place).refused(&["model.safetensors: expected a file, got a folder", "hint: "]);
}

#[test]
fn what_the_decoder_cannot_run_has_a_hint() {
    let place = Place::new();
    let config = model(&place, "llama-mqa", None).join("config.json");
    let mut fields: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&config).unwrap()).unwrap();
    fields["rope_scaling"] = serde_json::json!({ "rope_type": "yarn", "factor": 4.0 });
    std::fs::write(&config, fields.to_string()).unwrap();
    trace(&place).refused(&["config.json: rope_scaling.rope_type", "got \"yarn\"", "hint: Llama, Qwen2 and Qwen3"]);
    fields["model_type"] = "mamba".into();
    std::fs::write(&config, fields.to_string()).unwrap();
    trace(&place).refused(&["config.json: model_type", "got \"mamba\"", "hint: Llama, Qwen2 and Qwen3"]);
}

#[test]
fn weights_that_are_no_numbers_name_the_model() {
    let place = Place::new();
    let folder = place.tiny_reasoner();
    let weights = folder.join("model.safetensors");
    let mut content = bytes(&weights);
    let n = content.len();
    // No number in any of the formats.
    content[n - 4..].fill(0xff);
    std::fs::write(&weights, content).unwrap();
    trace(&place).refused(&["no trace could be made", "numbers of model", "weights may be damaged"]);
}
