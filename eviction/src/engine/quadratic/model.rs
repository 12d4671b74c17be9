//! A decoder without a cache: at every step it computes every token of every layer again, in f64 and one number at a time.

use std::collections::BTreeMap;

use epikv_model::DType;
use epikv_model::config::ModelConfig;
use epikv_model::source::TensorSource;

/// What a token sees at one KV head: tokens and the numbers by which their keys are rotated. The last is the token itself.
pub(super) type Sight = Vec<(usize, u32)>;

/// Weights by name, row-major.
pub(super) struct Quadratic {
    config: ModelConfig,
    tensors: BTreeMap<String, Vec<f64>>,
    /// Sine and cosine by rotary position, `[D/2]` each.
    angles: Vec<Vec<(f64, f64)>>,
}

/// What a pass gives.
pub(super) struct Pass {
    /// Of the last token, `[vocab]`.
    pub(super) logits: Vec<f64>,
    /// Keys before rotation, by layer, KV head and token, `[D]`.
    pub(super) keys: Vec<Vec<Vec<Vec<f64>>>>,
}

impl Quadratic {
    /// For sequences of so many tokens.
    pub(super) fn new(config: &ModelConfig, source: &dyn TensorSource, n_tokens: u32) -> Self {
        let load = |name: String| {
            let tensor = source.load(&name).and_then(|tensor| Ok(tensor.to_dtype(DType::F64)?.flatten_all()?));
            let numbers = tensor.expect("a tensor of the model").to_vec1::<f64>().expect("f64");
            (name, numbers)
        };
        let tensors = config.tensors().into_iter().map(|(name, _)| load(name)).collect();
        let d = config.head_dim;
        let frequency = |i: usize| 1.0 / config.rope_theta.powf(2.0 * i as f64 / d as f64);
        let angles_at = |number: u32| (0..d / 2).map(|i| (f64::from(number) * frequency(i)).sin_cos()).collect();
        Self { config: config.clone(), tensors, angles: (0..n_tokens).map(angles_at).collect() }
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let mean = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
        let scale = 1.0 / (mean + self.config.rms_norm_eps).sqrt();
        x.iter().zip(&self.tensors[name]).map(|(v, weight)| v * scale * weight).collect()
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        self.tensors[name].chunks_exact(x.len()).map(|row| dot(row, x)).collect()
    }

    /// One head's vector at a rotary position.
    fn rotated(&self, x: &[f64], number: u32) -> Vec<f64> {
        let (d, mut out) = (x.len(), x.to_vec());
        for (i, (sin, cos)) in self.angles[number as usize].iter().enumerate() {
            out[i] = x[i] * cos - x[i + d / 2] * sin;
            out[i + d / 2] = x[i + d / 2] * cos + x[i] * sin;
        }
        out
    }

    /// Computes all tokens; `sight(token, layer, kv_head)` is what each saw when it was fed.
    pub(super) fn pass<'s>(&self, tokens: &[u32], sight: impl Fn(usize, usize, usize) -> &'s Sight) -> Pass {
        let ModelConfig { n_heads, n_kv_heads, head_dim: d, hidden_size, .. } = self.config;
        let embedding = &self.tensors["model.embed_tokens.weight"];
        let embedded = tokens.iter().map(|&id| embedding[id as usize * hidden_size..][..hidden_size].to_vec());
        let mut stream: Vec<Vec<f64>> = embedded.collect();
        let mut all_keys = Vec::new();
        for layer in 0..self.config.n_layers {
            let name = |part: &str| format!("model.layers.{layer}.{part}.weight");
            let project = |part: &str| -> Vec<Vec<f64>> {
                let normed = stream.iter().map(|x| self.norm(&name("input_layernorm"), x));
                normed.map(|x| self.linear(&name(part), &x)).collect()
            };
            let [queries, keys, values] = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"].map(project);
            for token in 0..tokens.len() {
                let mut attended = Vec::with_capacity(n_heads * d);
                for head in 0..n_heads {
                    let kv_head = head / (n_heads / n_kv_heads);
                    let seen = sight(token, layer, kv_head);
                    let number = seen.last().expect("a token sees itself").1;
                    let query = self.rotated(&queries[token][head * d..(head + 1) * d], number);
                    let of = |all: &[Vec<f64>], at: usize| all[at][kv_head * d..(kv_head + 1) * d].to_vec();
                    let weight = |&(at, number): &(usize, u32)| {
                        (dot(&query, &self.rotated(&of(&keys, at), number)) / (d as f64).sqrt()).exp()
                    };
                    let weights: Vec<f64> = seen.iter().map(weight).collect();
                    let sum: f64 = weights.iter().sum();
                    let mut out = vec![0.0; d];
                    for (&(at, _), weight) in seen.iter().zip(&weights) {
                        out.iter_mut().zip(of(&values, at)).for_each(|(out, v)| *out += weight / sum * v);
                    }
                    attended.extend(out);
                }
                add(&mut stream[token], &self.linear(&name("self_attn.o_proj"), &attended));
                let normed = self.norm(&name("post_attention_layernorm"), &stream[token]);
                let (gate, up) =
                    (self.linear(&name("mlp.gate_proj"), &normed), self.linear(&name("mlp.up_proj"), &normed));
                let gated: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
                add(&mut stream[token], &self.linear(&name("mlp.down_proj"), &gated));
            }
            let of_head = |head: usize| keys.iter().map(|key| key[head * d..(head + 1) * d].to_vec()).collect();
            all_keys.push((0..n_kv_heads).map(of_head).collect());
        }
        let last = self.norm("model.norm.weight", &stream[tokens.len() - 1]);
        Pass { logits: self.linear("lm_head.weight", &last), keys: all_keys }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], more: &[f64]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}
