//! The function of the decoder, with a graph for gradients.

use std::sync::Arc;

use epikv_model::autograd::Var;
use epikv_model::{Device, Tensor};

use crate::attention::{Angles, CausalAttention};
use crate::layout::PER_LAYER;
use crate::pointwise::{Gated, RmsNorm};
use epikv_model::config::ModelConfig;
use epikv_model::error::Result;
use epikv_model::rope::Rope;

/// Angles of the first `n` positions.
pub(crate) fn angles(config: &ModelConfig, n: usize) -> Arc<Angles> {
    let (cos, sin) = Rope::new(config).angles(0..n as u32);
    Arc::new(Angles { cos, sin })
}

/// Logits of packed sequences, each from position 0.
///
/// # Shapes
/// `inputs`: `[T]`, the sum of `lengths`; result: `[T, vocab]`. `weights` are in the order of the layout.
pub(crate) fn logits(
    config: &ModelConfig,
    weights: &[Var],
    inputs: &[u32],
    lengths: &[usize],
    angles: &Arc<Angles>,
) -> Result<Tensor> {
    let norm = RmsNorm { eps: config.rms_norm_eps as f32 };
    let attention = CausalAttention {
        n_heads: config.n_heads,
        n_kv_heads: config.n_kv_heads,
        head_dim: config.head_dim,
        lengths: lengths.into(),
        angles: Arc::clone(angles),
    };
    let embedding = &weights[0];
    let mut x = embedding.index_select(&Tensor::new(inputs, &Device::Cpu)?, 0)?; // [T, d]
    for block in weights[1..weights.len() - 1].chunks_exact(PER_LAYER) {
        let [input_norm, qkv, out, mlp_norm, gate_up, down] = block else { unreachable!("chunks are exact") };
        let mixed = x.apply_op2(input_norm, norm)?.matmul(qkv)?.apply_op1(attention.clone())?;
        x = (x + mixed.matmul(out)?)?;
        let hidden = x.apply_op2(mlp_norm, norm)?.matmul(gate_up)?.apply_op1(Gated)?;
        x = (x + hidden.matmul(down)?)?;
    }
    let last = x.apply_op2(&weights[weights.len() - 1], norm)?;
    Ok(last.matmul(&embedding.t()?)?)
}
