//! A seeded random decoder: the same bits on every machine, whatever the order of loading.
//!
//! The numbers of a tensor come from a `ChaCha8` stream whose key is a hash of seed and name. A normal variate is the sum
//! of twelve uniform ones: `ln` and `cos` of a Box-Muller transform differ between mathematical libraries, sums do not.
//!
//! Scales keep activations near one. Queries and keys are larger, so that attention is far from uniform and a mistake in
//! RoPE, masks or the head map shows in the logits.

use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

use super::random_spec::RandomSpec;
use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::source::TensorSource;

/// Changes whenever the same spec would give other weights.
const GENERATOR: &str = "epikv random weights 1";

/// With it, `q . k / sqrt(D)` has a standard deviation of about 2.6.
const QUERY_KEY_GAIN: f32 = 1.6;
const HEAD_GAIN: f32 = 2.0;

/// The tensors of a random decoder, made when they are asked for.
#[derive(Debug)]
pub(super) struct RandomWeights {
    seed: u64,
    config: ModelConfig,
    place: PathBuf,
}

impl RandomWeights {
    pub(super) fn new(spec: &RandomSpec) -> Self {
        Self { seed: spec.seed, config: spec.config(), place: PathBuf::from(spec.to_string()) }
    }
}

/// What stands for the weights of `spec` where their hash is wanted.
pub(super) fn identity(spec: &RandomSpec) -> String {
    format!("{GENERATOR}; {}", spec.written_out())
}

impl TensorSource for RandomWeights {
    fn place(&self) -> &Path {
        &self.place
    }

    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        self.config.tensors()
    }

    fn load(&self, name: &str) -> Result<Tensor> {
        let Some((_, shape)) = self.config.tensors().into_iter().find(|(known, _)| known == name) else {
            return Err(Error::Request {
                what: "tensor name",
                expected: "one of the source".to_owned(),
                got: name.to_owned(),
            });
        };
        let (mean, deviation) = self.moments(name, &shape);
        let mut stream = stream(self.seed, name);
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| mean + deviation * normal(&mut stream)).collect();
        Ok(Tensor::from_vec(values, shape, &Device::Cpu)?)
    }
}

impl RandomWeights {
    /// Mean and standard deviation of a tensor; a matrix keeps the variance of its input times the gain squared.
    fn moments(&self, name: &str, shape: &[usize]) -> (f32, f32) {
        let by_inputs = |gain: f32| gain / (shape.last().copied().unwrap_or(1) as f32).sqrt();
        let queries_or_keys = name.contains("q_proj") || name.contains("k_proj");
        if name.contains("q_norm") || name.contains("k_norm") {
            (QUERY_KEY_GAIN, 0.1)
        } else if name.ends_with("norm.weight") {
            (1.0, 0.1)
        } else if name.ends_with("bias") {
            (0.0, 0.5)
        } else if name.contains("lm_head") || (name.contains("embed_tokens") && self.config.tie_word_embeddings) {
            (0.0, by_inputs(HEAD_GAIN))
        } else if name.contains("embed_tokens") {
            (0.0, 1.0)
        } else if queries_or_keys {
            (0.0, by_inputs(QUERY_KEY_GAIN))
        } else {
            (0.0, by_inputs(1.0))
        }
    }
}

fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(GENERATOR);
    hash.update(seed.to_le_bytes());
    hash.update(name);
    ChaCha8Rng::from_seed(hash.finalize().into())
}

/// Sum of twelve 16-bit uniforms, centred and scaled to variance one: exact integers and one division by a power of two.
fn normal(stream: &mut ChaCha8Rng) -> f32 {
    const CENTRE: i32 = 6 * 0xffff; // twelve times 65535 / 2
    let sum: u32 = (0..6).map(|_| stream.next_u32()).map(|word| (word >> 16) + (word & 0xffff)).sum();
    (sum.cast_signed() - CENTRE) as f32 / 65_536.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> RandomWeights {
        RandomWeights::new(&text.parse().unwrap())
    }

    fn values(source: &RandomWeights, name: &str) -> Vec<f32> {
        source.load(name).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    fn moments(values: &[f32]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        (mean, (values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    #[test]
    fn a_tensor_depends_on_seed_and_name_only() {
        let name = "model.layers.1.mlp.up_proj.weight";
        let one = values(&source("random:5"), name);
        assert_eq!(one, values(&source("random:5,layers=2,vocab=64"), name));
        assert_ne!(one, values(&source("random:6"), name));
        assert_ne!(one, values(&source("random:5"), "model.layers.2.mlp.up_proj.weight"));
    }

    /// The first numbers of one tensor; another value here means that all `random:` results change.
    #[test]
    fn the_bits_are_pinned() {
        let embedding = values(&source("random:0"), "model.embed_tokens.weight");
        let bits: Vec<u32> = embedding[..4].iter().map(|value| value.to_bits()).collect();
        assert_eq!(bits, [0x3f87_c500, 0xbea7_6a00, 0x3f96_6680, 0x3f0f_bb00]);
    }

    #[test]
    fn scales_are_as_documented() {
        let source = source("random:1");
        let near = |name: &str, mean: f64, deviation: f64| {
            let (got_mean, got_deviation) = moments(&values(&source, name));
            assert!((got_mean - mean).abs() < 0.05, "{name}: mean {got_mean}");
            assert!((got_deviation / deviation - 1.0).abs() < 0.2, "{name}: deviation {got_deviation}");
        };
        near("model.embed_tokens.weight", 0.0, 1.0);
        near("model.layers.0.self_attn.q_proj.weight", 0.0, 1.6 / 8.0);
        near("model.layers.3.mlp.down_proj.weight", 0.0, 1.0 / 128f64.sqrt());
        near("model.norm.weight", 1.0, 0.1);
        near("lm_head.weight", 0.0, 2.0 / 8.0);
    }

    #[test]
    fn every_tensor_of_every_family_loads_with_its_shape() {
        for arch in ["llama", "qwen2", "qwen3"] {
            let source = source(&format!("random:0,arch={arch},tied=true,layers=1,vocab=16"));
            crate::source::check(&source, &source.config).unwrap();
            for (name, shape) in source.shapes() {
                assert_eq!(source.load(&name).unwrap().dims(), shape);
            }
        }
        assert!(source("random:0").load("lm_head.bias").is_err());
    }
}
