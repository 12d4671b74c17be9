//! Where each weight of the model stands in the flat vector, how it begins, and how a model grows in depth.

use epikv_model::Device;
use epikv_model::autograd::Var;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use epikv_model::config::ModelConfig;
use epikv_model::error::Result;

/// Standard deviation of the embedding at the start.
const EMBEDDING_SD: f64 = 0.05;

/// Parameters of one block.
pub(crate) const PER_LAYER: usize = 6;

/// One matrix or vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in checkpoints.
    pub name: String,
    /// `[in, out]` of a matrix, `[size]` of a norm, `[vocab, d]` of the embedding.
    pub shape: Vec<usize>,
    /// First element in the flat vector.
    pub offset: usize,
}

impl Parameter {
    /// Elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether weight decay applies: to matrices, not to norms.
    pub fn decays(&self) -> bool {
        self.shape.len() > 1
    }

    /// Its part of a flat vector.
    pub fn of<'a>(&self, flat: &'a [f32]) -> &'a [f32] {
        &flat[self.offset..self.offset + self.len()]
    }

    /// Its part of a flat vector, to be changed.
    pub fn of_mut<'a>(&self, flat: &'a mut [f32]) -> &'a mut [f32] {
        &mut flat[self.offset..self.offset + self.len()]
    }
}

/// All parameters of a Llama-shaped model with tied embeddings, in order: embedding, six for each block, final norm.
///
/// Matrices that read the same input are one: `qkv = [q | k | v]`, `gate_up = [gate | up]`.
#[derive(Debug, Clone)]
pub struct ParameterLayout {
    parameters: Vec<Parameter>,
    n_layers: usize,
}

impl ParameterLayout {
    /// The layout of a configuration.
    pub fn new(config: &ModelConfig) -> Self {
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let (q, kv) = (config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim);
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut add = |name: String, shape: Vec<usize>| {
            let offset = parameters.last().map_or(0, |p| p.offset + p.len());
            parameters.push(Parameter { name, shape, offset });
        };
        add("embedding".to_owned(), vec![config.vocab_size, d]);
        for layer in 0..config.n_layers {
            let name = |part: &str| format!("layers.{layer}.{part}");
            add(name("input_norm"), vec![d]);
            add(name("qkv"), vec![d, q + 2 * kv]);
            add(name("out"), vec![q, d]);
            add(name("mlp_norm"), vec![d]);
            add(name("gate_up"), vec![d, 2 * f]);
            add(name("down"), vec![f, d]);
        }
        add("final_norm".to_owned(), vec![d]);
        Self { parameters, n_layers: config.n_layers }
    }

    /// The parameters, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Elements of all of them.
    pub fn n_weights(&self) -> usize {
        self.parameters.iter().map(Parameter::len).sum()
    }

    /// Weights to start from: norms 1, matrices normal with variance `1 / in`, those that write to the residual stream
    /// divided by `sqrt(2 L)`.
    pub fn initial(&self, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut flat = Vec::with_capacity(self.n_weights());
        for parameter in &self.parameters {
            let writes = parameter.name.ends_with("out") || parameter.name.ends_with("down");
            let depth = if writes { (2.0 * self.n_layers as f64).sqrt() } else { 1.0 };
            let sd = match parameter.shape.as_slice() {
                _ if parameter.name == "embedding" => EMBEDDING_SD,
                [inputs, _] => 1.0 / ((*inputs as f64).sqrt() * depth),
                _ => 0.0,
            };
            let mean = if parameter.decays() { 0.0 } else { 1.0 };
            flat.extend((0..parameter.len()).map(|_| (mean + sd * normal(&mut rng)) as f32));
        }
        flat
    }

    /// The same parameters as variables of the tensor library.
    pub(crate) fn variables(&self, flat: &[f32]) -> Result<Vec<Var>> {
        let variable = |p: &Parameter| Ok(Var::from_slice(p.of(flat), p.shape.as_slice(), &Device::Cpu)?);
        self.parameters.iter().map(variable).collect()
    }

    /// Carries a flat vector over to a deeper layout: block `i` of the new model is a copy of block `i L / L'` of this one.
    ///
    /// The `k` copies of a block write `1 / k` of what it wrote, each after the one before: the block's one long step along
    /// the residual stream becomes `k` short ones. The function changes a little, and no copy is idle.
    /// Gradients of matrices that write stay as they were, those of the others shrink by `k`; so do the moments.
    pub(crate) fn grown(&self, deeper: &Self, flat: &[f32], holds: Holds) -> Vec<f32> {
        let mut grown = vec![0.0; deeper.n_weights()];
        let mut copy = |from: usize, to: usize, factor: f32| {
            let pairs = deeper.parameters[to].of_mut(&mut grown).iter_mut().zip(self.parameters[from].of(flat));
            pairs.for_each(|(to, from)| *to = factor * from);
        };
        copy(0, 0, 1.0);
        copy(self.parameters.len() - 1, deeper.parameters.len() - 1, 1.0);
        let source = |layer: usize| layer * self.n_layers / deeper.n_layers;
        for layer in 0..deeper.n_layers {
            let n_copies = (0..deeper.n_layers).filter(|other| source(*other) == source(layer)).count() as f32;
            for part in 0..PER_LAYER {
                let factor = match (holds, matches!(part, 2 | 5)) {
                    (Holds::Weights, true) | (Holds::FirstMoments, false) => 1.0 / n_copies,
                    (Holds::SecondMoments, false) => 1.0 / (n_copies * n_copies),
                    (Holds::Weights, false) | (Holds::FirstMoments | Holds::SecondMoments, true) => 1.0,
                };
                copy(1 + source(layer) * PER_LAYER + part, 1 + layer * PER_LAYER + part, factor);
            }
        }
        grown
    }
}

/// What a flat vector holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Weights,
    FirstMoments,
    SecondMoments,
}

/// A normal number, by Box and Muller's method.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let mut uniform = || ((rng.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (u, v) = (uniform(), uniform());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
