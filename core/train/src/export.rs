//! A trained model as a Hugging Face folder that Transformers and [`epikv_model::load`] read.

use std::collections::HashMap;
use std::path::Path;

use serde_json::json;

use crate::checkpoint::{Floats, write_whole};
use crate::layout::Parameter;
use crate::trainer::Trainer;
use epikv_model::config::ModelConfig;
use epikv_model::error::{Error, Result};

/// Writes `config.json`, `generation_config.json` and `model.safetensors` (f16, or f32 if asked) to a folder, which is
/// made if it is not there. Tokenizer files are the caller's.
///
/// # Errors
/// If a file cannot be written.
pub fn export_folder(trainer: &Trainer, folder: &Path, half: bool) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
    let dtype = if half { "float16" } else { "float32" };
    write_json(&folder.join("config.json"), &config_json(trainer.config(), dtype))?;
    write_json(&folder.join("generation_config.json"), &generation_json(trainer.config()))?;

    let matrices = hugging_face(trainer).into_iter().map(|(name, shape, elements)| {
        (name, if half { Floats::half(shape, &elements) } else { Floats::new(shape, &elements) })
    });
    let about: HashMap<String, String> = [("format".to_owned(), "pt".to_owned())].into();
    let path = folder.join("model.safetensors");
    let bytes = safetensors::serialize(matrices, Some(about)).map_err(|error| Error::Damaged {
        path: path.clone(),
        what: "tensors".to_owned(),
        expected: "tensors that can be written".to_owned(),
        got: error.to_string(),
    })?;
    write_whole(&path, &bytes)
}

fn config_json(config: &ModelConfig, dtype: &str) -> serde_json::Value {
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.n_kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "max_position_embeddings": config.max_positions,
        "tie_word_embeddings": true,
        "attention_bias": false,
        "mlp_bias": false,
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_ids.first(),
        "pad_token_id": config.pad_id,
        "torch_dtype": dtype,
    })
}

fn generation_json(config: &ModelConfig) -> serde_json::Value {
    json!({
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_ids.first(),
        "pad_token_id": config.pad_id,
        "do_sample": false,
    })
}

fn write_json(path: &Path, value: &serde_json::Value) -> Result<()> {
    write_whole(path, format!("{value:#}\n").as_bytes())
}

/// Name, shape and elements of each tensor in Hugging Face's naming; matrices are `[out, in]`.
fn hugging_face(trainer: &Trainer) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let config = trainer.config();
    let (q, kv) = (config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim);
    let f = config.intermediate_size;
    let mut all = Vec::new();
    for parameter in trainer.layout().parameters() {
        let elements = parameter.of(trainer.weights());
        let mut whole = |name: String| all.push((name, parameter.shape.clone(), elements.to_vec()));
        let Some((layer, part)) = parameter.name.strip_prefix("layers.").and_then(|rest| rest.split_once('.')) else {
            whole(
                if parameter.name == "embedding" { "model.embed_tokens.weight" } else { "model.norm.weight" }
                    .to_owned(),
            );
            continue;
        };
        let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
        let columns: &[(&str, usize)] = match part {
            "input_norm" => {
                whole(name("input_layernorm"));
                continue;
            }
            "mlp_norm" => {
                whole(name("post_attention_layernorm"));
                continue;
            }
            "qkv" => &[("self_attn.q_proj", q), ("self_attn.k_proj", kv), ("self_attn.v_proj", kv)],
            "out" => &[("self_attn.o_proj", config.hidden_size)],
            "gate_up" => &[("mlp.gate_proj", f), ("mlp.up_proj", f)],
            _ => &[("mlp.down_proj", config.hidden_size)],
        };
        let mut first = 0;
        for (part, width) in columns {
            all.push((name(part), vec![*width, parameter.shape[0]], transposed(parameter, elements, first, *width)));
            first += width;
        }
    }
    all
}

/// Columns `first..first + width` of a matrix `[in, out]`, as `[width, in]`.
fn transposed(parameter: &Parameter, elements: &[f32], first: usize, width: usize) -> Vec<f32> {
    let out = parameter.shape[1];
    (first..first + width).flat_map(|column| elements.iter().skip(column).step_by(out).copied()).collect()
}
