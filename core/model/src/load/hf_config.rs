//! `config.json` and `generation_config.json` of a Hugging Face folder.
//!
//! Fields that a file leaves out get the values that Transformers gives them; sizes that make the model what it is must
//! be there. What the decoder cannot honour is an error here, never ignored.

use std::path::Path;

use super::files::ModelFiles;
use super::json_fields::{Fields, read_object};
use super::{hf_rope, limits};
use crate::config::{Architecture, ModelConfig};
use crate::error::Result;

/// File names of a folder in the order in which they are read.
pub(super) const CONFIG: &str = "config.json";
pub(super) const GENERATION_CONFIG: &str = "generation_config.json";

/// Reads `config.json` and, where there is one, `generation_config.json` of a model.
pub(crate) fn read(files: &ModelFiles) -> Result<ModelConfig> {
    let path = files.path(CONFIG);
    let object = read_object(files, CONFIG)?;
    let fields = Fields::new(&path, "", &object);
    let mut config = parse(&path, &fields)?;

    let path = files.path(GENERATION_CONFIG);
    if files.has(GENERATION_CONFIG) {
        let object = read_object(files, GENERATION_CONFIG)?;
        let fields = Fields::new(&path, "", &object);
        let eos = fields.ids("eos_token_id")?;
        if !eos.is_empty() {
            config.eos_ids = eos;
        }
        config.bos_id = fields.id("bos_token_id")?.or(config.bos_id);
        config.pad_id = fields.id("pad_token_id")?.or(config.pad_id);
    }
    Ok(config)
}

fn parse(path: &Path, fields: &Fields<'_>) -> Result<ModelConfig> {
    let architecture = architecture(fields)?;
    if fields.get("quantization_config").is_some() {
        let expected = "unquantised weights (f32, f16 or bf16 safetensors); quantised ones load from a .gguf file";
        return Err(fields.error("quantization_config", expected));
    }
    if let Some(activation) = fields.text("hidden_act")?
        && !matches!(activation, "silu" | "swish")
    {
        return Err(fields.error("hidden_act", "silu"));
    }
    let llama = architecture == Architecture::Llama;
    let hidden_size = fields.needed_size("hidden_size")?;
    let n_heads = fields.needed_size("num_attention_heads")?;
    let max_positions = fields.size("max_position_embeddings")?.unwrap_or(if llama { 2048 } else { 32_768 });
    let n_layers = fields.needed_size("num_hidden_layers")?;
    check_sliding_window(fields, architecture, n_layers, max_positions)?;
    let (rope_theta, rope_scaling) = hf_rope::read(path, fields, max_positions)?;
    let attention_bias = fields.flag("attention_bias")?;
    let config = ModelConfig {
        architecture,
        vocab_size: fields.needed_size("vocab_size")?,
        hidden_size,
        n_layers,
        n_heads,
        n_kv_heads: fields.size("num_key_value_heads")?.unwrap_or(n_heads),
        head_dim: head_dim(fields, architecture, hidden_size, n_heads)?,
        intermediate_size: fields.needed_size("intermediate_size")?,
        rms_norm_eps: fields.number("rms_norm_eps")?.unwrap_or(1e-6),
        tie_word_embeddings: fields.flag("tie_word_embeddings")?,
        // Qwen2 has biases on q, k and v whatever its file says, and never on the output projection.
        qkv_bias: architecture == Architecture::Qwen2 || attention_bias,
        out_bias: architecture != Architecture::Qwen2 && attention_bias,
        mlp_bias: llama && fields.flag("mlp_bias")?,
        qk_norm: architecture == Architecture::Qwen3,
        rope_theta,
        rope_scaling,
        max_positions: rope_scaling.context(max_positions),
        // Transformers' Llama has ids of its own where a file leaves them out; null means none.
        bos_id: if llama && !fields.has("bos_token_id") { Some(1) } else { fields.id("bos_token_id")? },
        eos_ids: if llama && !fields.has("eos_token_id") { vec![2] } else { fields.ids("eos_token_id")? },
        pad_id: fields.id("pad_token_id")?,
    };
    limits::check(&config, path)?;
    Ok(config)
}

/// From `model_type`, or from `architectures` in files without it; both must agree where both are there.
fn architecture(fields: &Fields<'_>) -> Result<Architecture> {
    let unknown = || fields.error("model_type", Architecture::NAMES);
    let from_type = match fields.text("model_type")? {
        Some(name) => Some(Architecture::from_name(name).ok_or_else(unknown)?),
        None => None,
    };
    let classes = fields.texts("architectures")?.unwrap_or_default();
    let Some(class) = classes.first() else {
        return from_type.ok_or_else(unknown);
    };
    // Heads for classification and the like share the trunk but have no logits over the vocabulary.
    let family = class.strip_suffix("ForCausalLM").or_else(|| class.strip_suffix("Model"));
    let from_class = family.and_then(|family| Architecture::from_name(&family.to_ascii_lowercase()));
    match (from_type, from_class) {
        (None, Some(found)) => Ok(found),
        (Some(a), Some(b)) if a == b => Ok(a),
        _ => {
            Err(fields
                .error("architectures", "LlamaForCausalLM, Qwen2ForCausalLM or Qwen3ForCausalLM, as model_type says"))
        }
    }
}

fn head_dim(fields: &Fields<'_>, architecture: Architecture, hidden_size: usize, n_heads: usize) -> Result<usize> {
    match fields.size("head_dim")? {
        Some(given) => Ok(given),
        None if architecture == Architecture::Qwen3 => Ok(128),
        None if n_heads > 0 && hidden_size.is_multiple_of(n_heads) => Ok(hidden_size / n_heads),
        None => Err(fields.error("num_attention_heads", format!("a divisor of hidden_size = {hidden_size}"))),
    }
}

/// Attention over a window is not built; a window that never cuts anything off is the same as none.
fn check_sliding_window(
    fields: &Fields<'_>,
    architecture: Architecture,
    n_layers: usize,
    max_positions: usize,
) -> Result<()> {
    if architecture == Architecture::Llama {
        return Ok(()); // Transformers' Llama has no window, whatever its file says
    }
    // Qwen's window has a default in Transformers; null is none.
    let window = if fields.has("sliding_window") { fields.size("sliding_window")? } else { Some(4096) };
    if window.is_some_and(|window| window >= max_positions) {
        return Ok(());
    }
    if let Some(layer_types) = fields.texts("layer_types")? {
        let full = layer_types.iter().all(|&layer| layer == "full_attention");
        return if full { Ok(()) } else { Err(fields.error("layer_types", "full_attention for every layer")) };
    }
    let first_windowed_layer = fields.size("max_window_layers")?.unwrap_or(28);
    if fields.flag("use_sliding_window")? && window.is_some() && first_windowed_layer < n_layers {
        return Err(fields.error("use_sliding_window", "false: attention over a sliding window is not supported"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RopeScaling;

    const LLAMA: &str = r#"{"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4}"#;

    fn with(base: &str, extra: &str) -> Result<ModelConfig> {
        let mut object = serde_json::from_str::<serde_json::Map<_, _>>(base).unwrap();
        object.extend(serde_json::from_str::<serde_json::Map<_, _>>(extra).unwrap());
        let path = Path::new("config.json");
        parse(path, &Fields::new(path, "", &object))
    }

    fn message(extra: &str) -> String {
        with(LLAMA, extra).unwrap_err().to_string()
    }

    #[test]
    fn absent_fields_get_the_values_of_transformers() {
        let config = with(LLAMA, "{}").unwrap();
        assert_eq!((config.n_kv_heads, config.head_dim, config.max_positions), (4, 16, 2048));
        assert_eq!((config.rms_norm_eps, config.rope_theta, config.rope_scaling), (1e-6, 1e4, RopeScaling::Default));
        assert!(!config.tie_word_embeddings && !config.qkv_bias && !config.out_bias && !config.mlp_bias);
    }

    #[test]
    fn families_differ_in_biases_norms_and_head_size() {
        let qwen2 = with(LLAMA, r#"{"model_type": "qwen2"}"#).unwrap();
        assert!(qwen2.qkv_bias && !qwen2.out_bias && !qwen2.qk_norm);
        assert_eq!((qwen2.head_dim, qwen2.max_positions), (16, 32_768));
        let qwen3 = with(LLAMA, r#"{"model_type": "qwen3", "attention_bias": true}"#).unwrap();
        assert!(qwen3.qkv_bias && qwen3.out_bias && qwen3.qk_norm);
        assert_eq!(qwen3.head_dim, 128);
        let llama = with(LLAMA, r#"{"attention_bias": true, "mlp_bias": true}"#).unwrap();
        assert!(llama.qkv_bias && llama.out_bias && llama.mlp_bias);
    }

    #[test]
    fn the_family_may_come_from_the_class_and_must_agree() {
        let config = with(LLAMA, r#"{"model_type": null, "architectures": ["Qwen3ForCausalLM"]}"#).unwrap();
        assert_eq!(config.architecture, Architecture::Qwen3);
        assert!(message(r#"{"architectures": ["Qwen2ForCausalLM"]}"#).contains("architectures"));
        assert!(message(r#"{"architectures": ["LlamaForSequenceClassification"]}"#).contains("LlamaForCausalLM"));
        assert!(message(r#"{"model_type": "mamba"}"#).contains("expected llama, qwen2 or qwen3, got \"mamba\""));
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        assert!(message(r#"{"hidden_act": "gelu"}"#).contains("hidden_act: expected silu"));
        assert!(message(r#"{"quantization_config": {"quant_method": "gptq"}}"#).contains(".gguf"));
        assert!(message(r#"{"num_key_value_heads": 3}"#).contains("divisor"));
        assert!(message(r#"{"head_dim": 15}"#).contains("even"));
        assert!(message(r#"{"num_attention_heads": 5}"#).contains("divisor of hidden_size = 64"));
        assert!(message(r#"{"vocab_size": 8388608}"#).contains("vocabulary size"));
        assert!(message(r#"{"vocab_size": -1}"#).contains("vocab_size: expected a whole number, got -1"));
        assert!(message(r#"{"num_hidden_layers": null}"#).contains("num_hidden_layers"));
    }

    #[test]
    fn a_sliding_window_is_refused_only_where_it_matters() {
        let windowed = |extra: &str| {
            with(LLAMA, &format!(r#"{{"model_type": "qwen2", "sliding_window": 512, {extra}}}"#)).map(|_| ())
        };
        windowed(r#""use_sliding_window": false"#).unwrap();
        windowed(r#""use_sliding_window": true, "max_window_layers": 2"#).unwrap();
        windowed(r#""use_sliding_window": true, "max_window_layers": 0, "max_position_embeddings": 512"#).unwrap();
        let error = windowed(r#""use_sliding_window": true, "max_window_layers": 1"#).unwrap_err();
        assert!(error.to_string().contains("use_sliding_window"));
        let error = windowed(r#""layer_types": ["full_attention", "sliding_attention"]"#).unwrap_err();
        assert!(error.to_string().contains("layer_types"));
    }

    #[test]
    fn a_window_without_its_size_has_4096_positions() {
        let windowed = |kind: &str, positions: usize, extra: &str| {
            let given = format!(
                r#"{{"model_type": "{kind}", "use_sliding_window": true, "max_window_layers": 0, "max_position_embeddings": {positions}{extra}}}"#
            );
            with(LLAMA, &given).map(|_| ())
        };
        for kind in ["qwen2", "qwen3"] {
            let error = windowed(kind, 32_768, "").unwrap_err().to_string();
            assert!(error.contains("use_sliding_window"), "{error}");
            windowed(kind, 4096, "").unwrap();
            windowed(kind, 32_768, r#", "sliding_window": null"#).unwrap();
        }
    }

    #[test]
    fn generation_config_comes_first_for_the_end_ids() {
        let folder = tempfile::tempdir().unwrap();
        let base = LLAMA.replacen('{', r#"{"bos_token_id": null, "pad_token_id": -1, "#, 1);
        std::fs::write(folder.path().join(CONFIG), base).unwrap();
        let config = read(&folder.path().into()).unwrap();
        assert_eq!((config.eos_ids, config.pad_id, config.bos_id), (vec![2], None, None));
        let generation = r#"{"eos_token_id": [7, 8], "pad_token_id": 9}"#;
        std::fs::write(folder.path().join(GENERATION_CONFIG), generation).unwrap();
        let config = read(&folder.path().into()).unwrap();
        assert_eq!((config.eos_ids, config.pad_id), (vec![7, 8], Some(9)));
    }

    #[test]
    fn json_errors_carry_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(CONFIG), "{\n\"a\": }").unwrap();
        let error = read(&folder.path().into()).unwrap_err();
        assert!(error.to_string().contains("config.json is not valid JSON"));
        assert!(std::error::Error::source(&error).unwrap().to_string().contains("line 2"));
        std::fs::write(folder.path().join(CONFIG), "[]").unwrap();
        assert!(read(&folder.path().into()).unwrap_err().to_string().contains("expected an object"));
    }

    #[test]
    fn both_styles_of_the_parity_models_are_equal() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/parity/models");
        for name in ["llama", "qwen2"] {
            let read = |file: &str| {
                let path = golden.join(name).join(file);
                let object = read_object(&golden.join(name).as_path().into(), file).unwrap();
                parse(&path, &Fields::new(&path, "", &object)).unwrap()
            };
            assert_eq!(read("config.json"), read("config.legacy.json"));
        }
    }
}
