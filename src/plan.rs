//! `epikv plan`: memory of weights, keys and values, and attention matrices on paper, and how many requests fit.
//!
//! ```text
//! KV bytes a token    = 2 x layers x KV heads x head size x bytes a value
//! requests            = floor((share x device - weights) / (tokens x KV bytes a token))
//! explicit attention  = layers x heads x tokens^2 x bytes a value      (all matrices of one prompt, kept at once)
//! ```

use std::io::Write;

use anyhow::{Result, bail};
use epikv_model::config::ModelConfig;
use epikv_model::load::open;
use serde_json::json;

use crate::cli::PlanArgs;
use crate::output::Done;

const GIB: f64 = (1_u64 << 30) as f64;

/// What a plan needs to know of a model.
#[derive(Debug, Clone, Copy)]
struct Shape {
    layers: u64,
    heads: u64,
    kv_heads: u64,
    head_dim: u64,
    weight_bytes: u64,
}

/// The shape of Llama 3.1 8B with the weight of its 16-bit form as the `EpiKV` paper rounds it.
const LLAMA_8B: Shape = Shape { layers: 32, heads: 32, kv_heads: 8, head_dim: 128, weight_bytes: 16 << 30 };

impl Shape {
    fn of(config: &ModelConfig, value_bytes: u64) -> Self {
        let weights = config.tensors().into_iter().map(|(_, shape)| shape.iter().map(|&n| n as u64).product::<u64>());
        Self {
            layers: config.n_layers as u64,
            heads: config.n_heads as u64,
            kv_heads: config.n_kv_heads as u64,
            head_dim: config.head_dim as u64,
            weight_bytes: value_bytes * weights.sum::<u64>(),
        }
    }

    fn kv_bytes_a_token(self, value_bytes: u64) -> u64 {
        2 * self.layers * self.kv_heads * self.head_dim * value_bytes
    }

    fn attention_bytes(self, tokens: u64, value_bytes: u64) -> u128 {
        u128::from(self.layers * self.heads * value_bytes) * u128::from(tokens) * u128::from(tokens)
    }
}

/// Requests of `tokens` tokens that fit beside the weights; `None` where the weights do not.
fn requests(shape: Shape, device_bytes: f64, share: f64, tokens: u64, value_bytes: u64) -> Option<u64> {
    let free = share * device_bytes - shape.weight_bytes as f64;
    let each = (tokens * shape.kv_bytes_a_token(value_bytes)) as f64;
    // Whole numbers of bytes below 2^53: exact.
    (free >= 0.0).then(|| (free / each).floor() as u64)
}

/// Prints the plan.
pub(crate) fn run(args: &PlanArgs) -> Result<Done> {
    let value_bytes = u64::from(args.value_bytes);
    let shape = match &args.model {
        Some(model) => Shape::of(&open(model)?.0, value_bytes),
        None => LLAMA_8B,
    };
    if !(args.share > 0.0 && args.share <= 1.0 && args.device_gib > 0.0 && args.device_gib.is_finite()) {
        bail!("--share {} --device-gib {}: expected a share in (0, 1] and a size above 0", args.share, args.device_gib);
    }
    let kv = shape.kv_bytes_a_token(value_bytes);
    let mut out = std::io::stdout();
    let fit = |tokens: u64| requests(shape, args.device_gib * GIB, args.share, tokens, value_bytes);
    if args.json {
        let row = |tokens: &u64| {
            json!({
                "tokens": tokens,
                "kv_bytes": tokens * kv,
                "requests": fit(*tokens),
                "explicit_attention_bytes": shape.attention_bytes(*tokens, value_bytes) as f64,
                "basis": "projected",
            })
        };
        let rows: Vec<_> = args.tokens.iter().map(row).collect();
        let plan = json!({ "weight_bytes": shape.weight_bytes, "kv_bytes_a_token": kv, "rows": rows });
        writeln!(out, "{plan}")?;
        return Ok(Done::All);
    }
    writeln!(out, "weights {:.2} GiB; keys and values {kv} bytes a token", shape.weight_bytes as f64 / GIB)?;
    writeln!(
        out,
        "requests = floor(({} x {} GiB - {:.2} GiB) / (tokens x {kv} B))   basis=projected\n",
        args.share,
        args.device_gib,
        shape.weight_bytes as f64 / GIB
    )?;
    writeln!(
        out,
        "| tokens held | KV of one, GiB | requests | attention of a prompt that long, explicit, all layers, GiB |"
    )?;
    writeln!(out, "| ---: | ---: | ---: | ---: |")?;
    for &tokens in &args.tokens {
        let requests = fit(tokens).map_or("-".to_owned(), |n| n.to_string());
        let attention = shape.attention_bytes(tokens, value_bytes) as f64 / GIB;
        writeln!(out, "| {tokens} | {:.3} | {requests} | {attention:.2} |", (tokens * kv) as f64 / GIB)?;
    }
    Ok(Done::All)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_figure_comes_out_exactly() {
        assert_eq!(LLAMA_8B.kv_bytes_a_token(2), 128 << 10);
        let fit = |tokens| requests(LLAMA_8B, 80.0 * GIB, 0.9, tokens, 2);
        assert_eq!((fit(2048), fit(32_768)), (Some(224), Some(14)));
        assert_eq!(requests(LLAMA_8B, 16.0 * GIB, 0.9, 1, 2), None, "not even the weights");
    }

    #[test]
    fn explicit_attention_is_quadratic() {
        // 32 layers x 32 heads x 4,096^2 x 2 bytes.
        assert_eq!(LLAMA_8B.attention_bytes(4096, 2), 32 << 30);
    }
}
