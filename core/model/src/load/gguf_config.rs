//! Configuration of a GGUF file, from its metadata and the tensors that are there.

use candle_core::quantized::gguf_file::Value;

use super::gguf_header::GgufHeader;
use super::limits;
use crate::config::{Architecture, ModelConfig, RopeScaling};
use crate::error::{Error, Result};

/// Reads the configuration; the RoPE scaling of Llama 3 is in a tensor and added by the caller.
pub(super) fn read(header: &GgufHeader) -> Result<ModelConfig> {
    let general = Keys { header, prefix: "" };
    let architecture = general.text("general.architecture")?.and_then(Architecture::from_name);
    let architecture = architecture.ok_or_else(|| general.error("general.architecture", Architecture::NAMES))?;
    let prefix = format!("{}.", architecture.name());
    let keys = Keys { header, prefix: &prefix };
    refuse_other_kinds(&general, &keys)?;
    let hidden_size = keys.needed_size("embedding_length")?;
    let n_heads = keys.needed_size("attention.head_count")?;
    let head_dim = match keys.size("attention.key_length")? {
        Some(given) => given,
        None if n_heads > 0 && hidden_size.is_multiple_of(n_heads) => hidden_size / n_heads,
        None => return Err(keys.error("attention.head_count", format!("a divisor of {hidden_size}"))),
    };
    for same in ["attention.value_length", "rope.dimension_count"] {
        if keys.size(same)?.is_some_and(|size| size != head_dim) {
            return Err(keys.error(same, format!("the head size {head_dim}")));
        }
    }
    let embedding = header.tensors().get("token_embd.weight");
    let vocab_size = match embedding.and_then(|tensor| tensor.shape.first()) {
        Some(&rows) => rows,
        None => keys.needed_size("vocab_size")?,
    };
    let has = |tensor: &str| header.tensors().contains_key(tensor);
    let id = |key: &str| general.id(&format!("tokenizer.ggml.{key}_token_id"));
    let mut eos_ids = Vec::new();
    for end in ["eos", "eot", "eom"] {
        eos_ids.extend(id(end)?.filter(|id| !eos_ids.contains(id)));
    }
    let rope_scaling = rope_scaling(&keys)?;
    let config = ModelConfig {
        architecture,
        vocab_size,
        hidden_size,
        n_layers: keys.needed_size("block_count")?,
        n_heads,
        n_kv_heads: keys.size("attention.head_count_kv")?.unwrap_or(n_heads),
        head_dim,
        intermediate_size: keys.needed_size("feed_forward_length")?,
        rms_norm_eps: keys.needed_number("attention.layer_norm_rms_epsilon")?,
        tie_word_embeddings: !has("output.weight"),
        qkv_bias: has("blk.0.attn_q.bias"),
        out_bias: has("blk.0.attn_output.bias"),
        mlp_bias: has("blk.0.ffn_gate.bias"),
        qk_norm: architecture == Architecture::Qwen3,
        rope_theta: keys.number("rope.freq_base")?.unwrap_or(10_000.0),
        rope_scaling,
        max_positions: rope_scaling.context(keys.needed_size("context_length")?),
        bos_id: id("bos")?,
        eos_ids,
        pad_id: id("padding")?,
    };
    limits::check(&config, header.path())?;
    Ok(config)
}

/// Mixtures of experts, split files and sliding windows carry the same architecture name.
fn refuse_other_kinds(general: &Keys<'_>, keys: &Keys<'_>) -> Result<()> {
    if keys.size("expert_count")?.is_some_and(|count| count > 0) {
        return Err(keys.error("expert_count", "0: mixtures of experts are not supported"));
    }
    if general.size("split.count")?.is_some_and(|count| count > 1) {
        return Err(general.error("split.count", "1: merge the parts into one file first"));
    }
    let context = keys.size("context_length")?.unwrap_or(0);
    if keys.size("attention.sliding_window")?.is_some_and(|window| window > 0 && window < context) {
        return Err(keys.error("attention.sliding_window", "none: attention over a sliding window is not supported"));
    }
    Ok(())
}

fn rope_scaling(keys: &Keys<'_>) -> Result<RopeScaling> {
    // A factor without a kind is that of linear scaling; older files have it under another name. Both write 0 for none.
    let kind = keys.text("rope.scaling.type")?.unwrap_or("linear");
    let factor = match keys.number("rope.scaling.factor")? {
        Some(factor) => factor,
        None => keys.number("rope.scale_linear")?.unwrap_or(1.0),
    };
    let factor = if factor == 0.0 { 1.0 } else { factor };
    if !(factor.is_finite() && factor >= 1.0) {
        return Err(keys.error("rope.scaling.factor", "a number of at least 1"));
    }
    match kind {
        "linear" if factor > 1.0 => Ok(RopeScaling::Linear { factor }),
        "none" | "linear" => Ok(RopeScaling::Default),
        _ => Err(keys.error("rope.scaling.type", "none or linear (llama3 through the tensor rope_freqs.weight)")),
    }
}

/// Typed access to metadata under a prefix; integers of any width are sizes.
#[derive(Clone, Copy)]
struct Keys<'a> {
    header: &'a GgufHeader,
    prefix: &'a str,
}

impl<'a> Keys<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.header.metadata().get(&format!("{}{key}", self.prefix))
    }

    fn error(&self, key: &str, expected: impl Into<String>) -> Error {
        Error::Config {
            path: self.header.path().to_owned(),
            field: format!("{}{key}", self.prefix),
            expected: expected.into(),
            got: match self.get(key) {
                None => "nothing".to_owned(),
                Some(Value::String(text)) => text.chars().take(80).collect(),
                Some(Value::Array(values)) => format!("a list of {}", values.len()),
                Some(value) => format!("{value:?}"),
            },
        }
    }

    fn typed<T>(&self, key: &str, expected: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.error(key, expected)),
        }
    }

    /// Some files give a size per layer; the decoder has one for all.
    fn size(&self, key: &str) -> Result<Option<usize>> {
        self.typed(key, "a whole number, the same for all layers", |value| match value {
            Value::Array(values) => {
                let first = whole(values.first()?)?;
                values.iter().all(|value| whole(value) == Some(first)).then_some(first)
            }
            value => whole(value),
        })
    }

    fn needed_size(&self, key: &str) -> Result<usize> {
        self.size(key)?.ok_or_else(|| self.error(key, "a whole number"))
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", |value| match value {
            Value::F32(number) => Some(shortest(*number)),
            Value::F64(number) => Some(*number),
            value => whole(value).map(|number| number as f64),
        })
    }

    fn needed_number(&self, key: &str) -> Result<f64> {
        self.number(key)?.ok_or_else(|| self.error(key, "a number"))
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.typed(key, "a text", |value| value.to_string().ok().map(String::as_str))
    }

    /// `u32::MAX` is how llama.cpp writes "none".
    fn id(&self, key: &str) -> Result<Option<u32>> {
        let id = self.typed(key, "a token id", |value| whole(value).and_then(|id| u32::try_from(id).ok()))?;
        Ok(id.filter(|&id| id != u32::MAX))
    }
}

fn whole(value: &Value) -> Option<usize> {
    match value {
        Value::I8(n) => usize::try_from(*n).ok(),
        Value::I16(n) => usize::try_from(*n).ok(),
        Value::I32(n) => usize::try_from(*n).ok(),
        Value::I64(n) => usize::try_from(*n).ok(),
        Value::Bool(_) => None,
        value => usize::try_from(value.to_u64().ok()?).ok(),
    }
}

/// The double with the same decimal digits, so that 1e-5 stored as f32 is 1e-5 as in config.json and not 9.99999975e-6.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::gguf_header::tests::write;
    use super::*;

    /// Metadata of a `llama` file with one block; `changes` replace or add entries, `None` drops one.
    pub(in crate::load) fn metadata(changes: &[(&'static str, Option<Value>)]) -> Vec<(&'static str, Value)> {
        let base = [
            ("general.architecture", Value::String("llama".to_owned())),
            ("llama.block_count", Value::U32(1)),
            ("llama.context_length", Value::U32(2048)),
            ("llama.embedding_length", Value::U32(256)),
            ("llama.feed_forward_length", Value::U32(512)),
            ("llama.attention.head_count", Value::U32(4)),
            ("llama.attention.head_count_kv", Value::U32(2)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("llama.rope.freq_base", Value::F32(500_000.0)),
            ("llama.vocab_size", Value::U32(100)),
            ("tokenizer.ggml.eos_token_id", Value::U32(2)),
        ];
        let changed = |key: &str| changes.iter().any(|(changed, _)| *changed == key);
        let kept = base.into_iter().filter(|(key, _)| !changed(key));
        kept.chain(changes.iter().filter_map(|(key, value)| Some((*key, value.clone()?)))).collect()
    }

    fn parse(changes: &[(&'static str, Option<Value>)]) -> Result<ModelConfig> {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), &metadata(changes), &[]);
        read(&GgufHeader::read(file.path())?)
    }

    fn message(key: &'static str, value: Value) -> String {
        parse(&[(key, Some(value))]).unwrap_err().to_string()
    }

    #[test]
    fn defaults_and_decimal_constants() {
        let config = parse(&[("llama.rope.freq_base", None), ("llama.attention.head_count_kv", None)]).unwrap();
        assert_eq!((config.n_kv_heads, config.head_dim, config.vocab_size), (4, 64, 100));
        assert_eq!((config.rms_norm_eps, config.rope_theta), (1e-5, 10_000.0));
        assert!(config.tie_word_embeddings && !config.qkv_bias);
        let config = parse(&[]).unwrap();
        assert_eq!((config.rope_theta, config.eos_ids), (500_000.0, vec![2]));
    }

    #[test]
    fn end_ids_are_collected_once_each() {
        let config = parse(&[
            ("tokenizer.ggml.eot_token_id", Some(Value::U32(9))),
            ("tokenizer.ggml.eom_token_id", Some(Value::I32(2))),
            ("tokenizer.ggml.bos_token_id", Some(Value::U32(1))),
            ("tokenizer.ggml.padding_token_id", Some(Value::U32(u32::MAX))),
        ])
        .unwrap();
        assert_eq!((config.eos_ids, config.bos_id, config.pad_id), (vec![2, 9], Some(1), None));
    }

    #[test]
    fn per_layer_lists_must_agree() {
        let list = |values: &[u32]| Value::Array(values.iter().map(|&value| Value::U32(value)).collect());
        let config = parse(&[("llama.attention.head_count_kv", Some(list(&[2, 2])))]).unwrap();
        assert_eq!(config.n_kv_heads, 2);
        let text = message("llama.attention.head_count_kv", list(&[2, 1]));
        assert!(text.contains("the same for all layers, got a list of 2"), "{text}");
    }

    #[test]
    fn rope_scaling_old_and_new() {
        let linear = |key, kind: Option<&str>| {
            let kind = kind.map(|kind| Value::String(kind.to_owned()));
            parse(&[(key, Some(Value::F32(4.0))), ("llama.rope.scaling.type", kind)]).unwrap().rope_scaling
        };
        assert_eq!(linear("llama.rope.scale_linear", None), RopeScaling::Linear { factor: 4.0 });
        assert_eq!(linear("llama.rope.scale_linear", Some("linear")), RopeScaling::Linear { factor: 4.0 });
        assert_eq!(linear("llama.rope.scaling.factor", None), RopeScaling::Linear { factor: 4.0 });
        assert_eq!(linear("llama.rope.scaling.factor", Some("linear")), RopeScaling::Linear { factor: 4.0 });
        assert_eq!(linear("llama.rope.scaling.factor", Some("none")), RopeScaling::Default);
        let unscaled = parse(&[("llama.rope.scaling.factor", Some(Value::F32(0.0)))]).unwrap();
        assert_eq!(unscaled.rope_scaling, RopeScaling::Default);
        assert!(message("llama.rope.scaling.type", Value::String("yarn".to_owned())).ends_with("got yarn"));
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        assert!(message("general.architecture", Value::String("gemma".to_owned())).contains("got gemma"));
        assert!(message("llama.expert_count", Value::U32(8)).contains("mixtures of experts"));
        assert!(message("split.count", Value::U16(2)).contains("merge"));
        assert!(message("llama.attention.sliding_window", Value::U32(512)).contains("sliding window"));
        assert!(message("llama.rope.dimension_count", Value::U32(32)).contains("the head size 64"));
        assert!(message("llama.block_count", Value::F32(1.0)).contains("a whole number"));
        assert!(message("llama.block_count", Value::U32(5000)).contains("1 to 1000"));
        let error = parse(&[("llama.context_length", None)]).unwrap_err().to_string();
        assert!(error.ends_with("llama.context_length: expected a whole number, got nothing"), "{error}");
    }
}
