//! The shape of a model, and the memory computed from it.
//!
//! ```text
//! KV bytes a token    = 2 x layers x KV heads x head size x bytes a value
//! requests            = floor((share x device - weights) / (tokens x KV bytes a token))
//! explicit attention  = layers x heads x tokens^2 x bytes a value      (all matrices of one prompt, kept at once)
//! activations         = tokens of a pass x (2 d + max(3 f, 2 (heads + KV heads) x head size)) x bytes a value
//! ```
//!
//! with `d` the width of the residual stream and `f` that of the MLP: the stream, its norm, and the larger of what the MLP
//! (gate, up, product) and attention (query, key, value, output) hold.

use epikv_model::config::ModelConfig;

/// Bytes of a gibibyte.
pub(super) const GIB: f64 = (1_u64 << 30) as f64;

/// Sizes of a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) layers: u64,
    pub(super) heads: u64,
    pub(super) kv_heads: u64,
    pub(super) head_dim: u64,
    pub(super) width: u64,
    pub(super) mlp_width: u64,
    pub(super) weight_bytes: u64,
}

/// The shape of Llama 3.1 8B with the weight of its 16-bit form as the `EpiKV` paper rounds it.
pub(super) const LLAMA_8B: Shape =
    Shape { layers: 32, heads: 32, kv_heads: 8, head_dim: 128, width: 4096, mlp_width: 14_336, weight_bytes: 16 << 30 };

impl Shape {
    pub(super) fn of(config: &ModelConfig, value_bytes: u64) -> Self {
        let weights = config.tensors().into_iter().map(|(_, shape)| shape.iter().map(|&n| n as u64).product::<u64>());
        Self {
            layers: config.n_layers as u64,
            heads: config.n_heads as u64,
            kv_heads: config.n_kv_heads as u64,
            head_dim: config.head_dim as u64,
            width: config.hidden_size as u64,
            mlp_width: config.intermediate_size as u64,
            weight_bytes: value_bytes * weights.sum::<u64>(),
        }
    }

    pub(super) fn kv_bytes_a_token(self, value_bytes: u64) -> u64 {
        2 * self.layers * self.kv_heads * self.head_dim * value_bytes
    }

    pub(super) fn attention_bytes(self, tokens: u64, value_bytes: u64) -> u128 {
        u128::from(self.layers * self.heads * value_bytes) * u128::from(tokens) * u128::from(tokens)
    }

    pub(super) fn activation_bytes(self, tokens: u64, value_bytes: u64) -> u128 {
        let inner = (3 * self.mlp_width).max(2 * (self.heads + self.kv_heads) * self.head_dim);
        u128::from(tokens) * u128::from((2 * self.width + inner) * value_bytes)
    }
}

/// Memory of a device and the part of it that may be used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) bytes: f64,
    pub(super) share: f64,
}

/// Requests of `tokens` tokens that fit beside the weights; `None` where the weights do not.
pub(super) fn requests(shape: Shape, room: Room, tokens: u64, value_bytes: u64) -> Option<u64> {
    let free = room.share * room.bytes - shape.weight_bytes as f64;
    let each = (tokens * shape.kv_bytes_a_token(value_bytes)) as f64;
    // Whole numbers of bytes below 2^53: exact.
    (free >= 0.0).then(|| (free / each).floor() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_figure_comes_out_exactly() {
        assert_eq!(LLAMA_8B.kv_bytes_a_token(2), 128 << 10);
        let fit = |tokens| requests(LLAMA_8B, Room { bytes: 80.0 * GIB, share: 0.9 }, tokens, 2);
        assert_eq!((fit(2048), fit(32_768)), (Some(224), Some(14)));
        assert_eq!(requests(LLAMA_8B, Room { bytes: 16.0 * GIB, share: 0.9 }, 1, 2), None, "not even the weights");
    }

    #[test]
    fn explicit_attention_is_quadratic_and_activations_are_not() {
        // 32 layers x 32 heads x 4,096^2 x 2 bytes.
        assert_eq!(LLAMA_8B.attention_bytes(4096, 2), 32 << 30);
        // 2 x 4,096 + 3 x 14,336 numbers of two bytes a token.
        assert_eq!(LLAMA_8B.activation_bytes(10, 2), 10 * 2 * (8192 + 43_008));
    }
}
