//! A slow decoder in f64 that is told, for each token, layer and KV head, which tokens it attends to and by which number
//! each of them is rotated.

use std::collections::BTreeMap;

use epikv_model::config::ModelConfig;
use epikv_model::source::TensorSource;

use crate::golden::values;

/// A token that is attended to, and the rotary number of its key.
pub(super) type Seen = (usize, usize);

/// The decoder, and the keys (before rotation) and values of every token that it ever read.
#[derive(Clone)]
pub(super) struct Reference {
    config: ModelConfig,
    weights: BTreeMap<String, Vec<f64>>,
    /// By layer and token, `[H_kv D]`.
    keys: Vec<Vec<Vec<f64>>>,
    values: Vec<Vec<Vec<f64>>>,
}

impl Reference {
    pub(super) fn new(config: ModelConfig, source: &dyn TensorSource) -> Self {
        let wide = |name: &str| values(&source.load(name).unwrap()).iter().map(|&x| f64::from(x)).collect();
        let weights = source.shapes().iter().map(|(name, _)| (name.clone(), wide(name))).collect();
        let empty = vec![Vec::new(); config.n_layers];
        Self { weights, keys: empty.clone(), values: empty, config }
    }

    /// Logits after the next token. `seen(layer, head)` is what it attends to, itself as the last.
    pub(super) fn step(&mut self, token: u32, seen: impl Fn(usize, usize) -> Vec<Seen>) -> Vec<f64> {
        let (d, heads) = (self.config.head_dim, self.config.n_heads);
        let group = heads / self.config.n_kv_heads;
        let width = self.config.hidden_size;
        let mut x = self.weights["model.embed_tokens.weight"][token as usize * width..][..width].to_vec();
        for layer in 0..self.config.n_layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
            let normed = self.norm(&name("input_layernorm"), &x);
            let [q, k, v] = ["q", "k", "v"].map(|p| self.linear(&name(&format!("self_attn.{p}_proj")), &normed));
            self.keys[layer].push(k);
            self.values[layer].push(v);
            let head = |head: usize| {
                let of = head / group * d..(head / group + 1) * d;
                let seen = seen(layer, head / group);
                let own = self.rotated(&q[head * d..(head + 1) * d], seen.last().unwrap().1);
                let logit = |&(token, number): &Seen| {
                    let key = self.rotated(&self.keys[layer][token][of.clone()], number);
                    dot(&own, &key) / (d as f64).sqrt()
                };
                let weights: Vec<f64> = seen.iter().map(|seen| logit(seen).exp()).collect();
                let total: f64 = weights.iter().sum();
                let mut sum = vec![0.0; d];
                for (weight, (token, _)) in weights.iter().zip(&seen) {
                    let value = &self.values[layer][*token][of.clone()];
                    sum.iter_mut().zip(value).for_each(|(sum, v)| *sum += weight / total * v);
                }
                sum
            };
            let mixed: Vec<f64> = (0..heads).flat_map(head).collect();
            add(&mut x, &self.linear(&name("self_attn.o_proj"), &mixed));
            let normed = self.norm(&name("post_attention_layernorm"), &x);
            let [mut gate, up] = ["gate", "up"].map(|p| self.linear(&name(&format!("mlp.{p}_proj")), &normed));
            gate.iter_mut().zip(up).for_each(|(g, up)| *g = *g / (1.0 + (-*g).exp()) * up);
            add(&mut x, &self.linear(&name("mlp.down_proj"), &gate));
        }
        self.linear("lm_head.weight", &self.norm("model.norm.weight", &x))
    }

    /// `x W^T`, with the weight stored `[out, in]`.
    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        self.weights[name].chunks_exact(x.len()).map(|w| dot(w, x)).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let rms = (dot(x, x) / x.len() as f64 + self.config.rms_norm_eps).sqrt();
        x.iter().zip(&self.weights[name]).map(|(x, w)| x / rms * w).collect()
    }

    fn rotated(&self, x: &[f64], number: usize) -> Vec<f64> {
        let half = x.len() / 2;
        let mut out = x.to_vec();
        for i in 0..half {
            let (sin, cos) = (number as f64 * self.config.rope_theta.powf(-(i as f64) / half as f64)).sin_cos();
            (out[i], out[i + half]) = (x[i] * cos - x[i + half] * sin, x[i + half] * cos + x[i] * sin);
        }
        out
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}
