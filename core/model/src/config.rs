//! The shape of a decoder: everything that the forward pass needs to know besides the weights.

use serde::Serialize;

epikv_words::words! {
    /// Families of decoder that share one forward pass.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    #[serde(into = "&'static str")]
    pub enum Architecture {
        /// Llama 2/3 and models of the same shape (`DeepSeek-R1-Distill-Llama`, `SmolLM2`).
        Llama = "llama",
        /// Qwen2 and Qwen2.5: biases on q, k and v.
        Qwen2 = "qwen2",
        /// Qwen3: RMS norms on q and k before the rotation, explicit head size.
        Qwen3 = "qwen3",
    }
}

impl Architecture {
    /// The names, as errors list them.
    pub const NAMES: &str = "llama, qwen2 or qwen3";
}

/// How RoPE frequencies are changed for long contexts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum RopeScaling {
    /// Unchanged.
    Default,
    /// All frequencies divided by `factor` (Chen et al. 2023, position interpolation).
    Linear {
        /// Divisor.
        factor: f64,
    },
    /// Llama 3: long wavelengths divided by `factor`, short ones kept, a ramp between.
    Llama3 {
        /// Divisor of the long wavelengths.
        factor: f64,
        /// Wavelengths above `original / low_freq_factor` are divided.
        low_freq_factor: f64,
        /// Wavelengths below `original / high_freq_factor` are kept.
        high_freq_factor: f64,
        /// Context of the model before scaling.
        original_max_positions: usize,
    },
}

impl RopeScaling {
    /// Context after scaling, from the one that the model's files state.
    ///
    /// Position interpolation stretches the stated context; the Llama 3 rule already states the stretched one.
    pub fn context(&self, stated: usize) -> usize {
        match self {
            Self::Linear { factor } => (stated as f64 * factor) as usize,
            Self::Default | Self::Llama3 { .. } => stated,
        }
    }
}

/// Shape and constants of a decoder.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one kind of tensor exists")]
pub struct ModelConfig {
    /// Family.
    pub architecture: Architecture,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Width `d` of the residual stream.
    pub hidden_size: usize,
    /// Blocks `L`.
    pub n_layers: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Key/value heads; divides `n_heads`. Query head `h` reads KV head `h / (n_heads / n_kv_heads)`.
    pub n_kv_heads: usize,
    /// Head size `D`; even. Not always `hidden_size / n_heads`.
    pub head_dim: usize,
    /// Width of the gated MLP.
    pub intermediate_size: usize,
    /// Added to the mean square in each RMS norm.
    pub rms_norm_eps: f64,
    /// Output head = embedding.
    pub tie_word_embeddings: bool,
    /// Biases on the q, k and v projections.
    pub qkv_bias: bool,
    /// Bias on the attention output projection (Llama's `attention_bias`).
    pub out_bias: bool,
    /// Biases in the MLP (Llama's `mlp_bias`).
    pub mlp_bias: bool,
    /// RMS norms of size `D` on q and k before the rotation.
    pub qk_norm: bool,
    /// RoPE base.
    pub rope_theta: f64,
    /// RoPE scaling.
    pub rope_scaling: RopeScaling,
    /// Context: positions `0..max_positions` are allowed.
    pub max_positions: usize,
    /// Begin-of-sequence id, where the model has one.
    pub bos_id: Option<u32>,
    /// Ids that end a generation, in the order of the file (`generation_config.json` before `config.json`).
    pub eos_ids: Vec<u32>,
    /// Padding id, where the model has one.
    pub pad_id: Option<u32>,
}

impl ModelConfig {
    /// Bytes that one token takes in the f32 cache of all layers: `2 L H_kv D 4`.
    pub fn kv_bytes_per_token(&self) -> usize {
        2 * self.n_layers * self.n_kv_heads * self.head_dim * size_of::<f32>()
    }

    /// Names and shapes of all tensors, in Hugging Face naming; matrices are `[out, in]`.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (d, f) = (self.hidden_size, self.intermediate_size);
        let (q, kv) = (self.n_heads * self.head_dim, self.n_kv_heads * self.head_dim);
        let mut all = vec![("model.embed_tokens.weight".to_owned(), vec![self.vocab_size, d])];
        for layer in 0..self.n_layers {
            let mut add = |name: &str, shape: Vec<usize>| all.push((format!("model.layers.{layer}.{name}"), shape));
            add("input_layernorm.weight", vec![d]);
            for (name, rows) in [("q", q), ("k", kv), ("v", kv)] {
                add(&format!("self_attn.{name}_proj.weight"), vec![rows, d]);
                if self.qkv_bias {
                    add(&format!("self_attn.{name}_proj.bias"), vec![rows]);
                }
            }
            if self.qk_norm {
                add("self_attn.q_norm.weight", vec![self.head_dim]);
                add("self_attn.k_norm.weight", vec![self.head_dim]);
            }
            add("self_attn.o_proj.weight", vec![d, q]);
            if self.out_bias {
                add("self_attn.o_proj.bias", vec![d]);
            }
            add("post_attention_layernorm.weight", vec![d]);
            for (name, shape) in [("gate", [f, d]), ("up", [f, d]), ("down", [d, f])] {
                add(&format!("mlp.{name}_proj.weight"), shape.to_vec());
                if self.mlp_bias {
                    add(&format!("mlp.{name}_proj.bias"), vec![shape[0]]);
                }
            }
        }
        all.push(("model.norm.weight".to_owned(), vec![d]));
        if !self.tie_word_embeddings {
            all.push(("lm_head.weight".to_owned(), vec![self.vocab_size, d]));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files_and_errors() {
        for family in Architecture::ALL {
            assert_eq!(Architecture::from_name(family.name()), Some(family));
            assert_eq!(serde_json::to_value(family).unwrap(), family.name());
            assert!(Architecture::NAMES.contains(family.name()));
        }
        assert_eq!(Architecture::from_name("Llama"), None);
    }
}
