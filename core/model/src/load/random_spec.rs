//! `random:SEED[,key=value...]`: the shape of a seeded random decoder, as it is typed.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::limits;
use crate::config::{Architecture, ModelConfig, RopeScaling};
use crate::error::{Error, Result};
use crate::tokenizer::builtin::{BUILTIN_BOS_ID, BUILTIN_EOS_ID, BUILTIN_PAD_ID, BUILTIN_VOCAB_SIZE};

/// What `--model random:...` starts with.
pub(super) const PREFIX: &str = "random:";

const KEYS: &str = "arch, layers, heads, kv_heads, hidden, head_dim, vocab, ffn, context, tied";

/// Weights of 8 GiB; larger ones were asked for by mistake.
const MAX_VALUES: usize = 1 << 31;

/// A seeded random decoder. Only what was typed is kept, so that what is shown is what can be typed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RandomSpec {
    /// Seed of all weights.
    pub seed: u64,
    /// Family; Llama where not given.
    pub architecture: Option<Architecture>,
    /// Blocks; 4 where not given.
    pub n_layers: Option<usize>,
    /// Query heads; 4 where not given.
    pub n_heads: Option<usize>,
    /// Key/value heads; 2 where not given and where that divides the query heads, else as many as those.
    pub n_kv_heads: Option<usize>,
    /// Width of the residual stream; 64 where not given.
    pub hidden_size: Option<usize>,
    /// Head size; `hidden / heads` where not given.
    pub head_dim: Option<usize>,
    /// Vocabulary; that of the built-in tokenizer where not given.
    pub vocab_size: Option<usize>,
    /// Width of the MLP; twice the residual stream where not given.
    pub intermediate_size: Option<usize>,
    /// Context; 4096 where not given.
    pub max_positions: Option<usize>,
    /// Output head = embedding; not so where not given.
    pub tied: Option<bool>,
}

impl RandomSpec {
    /// The full shape. Vocabulary and special ids are those of the built-in tokenizer; a smaller vocabulary has none.
    pub fn config(&self) -> ModelConfig {
        let architecture = self.architecture.unwrap_or(Architecture::Llama);
        let n_heads = self.n_heads.unwrap_or(4);
        let hidden_size = self.hidden_size.unwrap_or(64);
        let vocab_size = self.vocab_size.unwrap_or(BUILTIN_VOCAB_SIZE);
        let known = |id: &u32| (*id as usize) < vocab_size;
        let default_kv_heads = if n_heads.is_multiple_of(2) { n_heads.min(2) } else { n_heads };
        ModelConfig {
            architecture,
            vocab_size,
            hidden_size,
            n_layers: self.n_layers.unwrap_or(4),
            n_heads,
            n_kv_heads: self.n_kv_heads.unwrap_or(default_kv_heads),
            head_dim: self.head_dim.unwrap_or_else(|| hidden_size / n_heads.max(1)),
            intermediate_size: self.intermediate_size.unwrap_or(hidden_size.saturating_mul(2)),
            rms_norm_eps: 1e-5,
            tie_word_embeddings: self.tied.unwrap_or(false),
            qkv_bias: architecture == Architecture::Qwen2,
            out_bias: false,
            mlp_bias: false,
            qk_norm: architecture == Architecture::Qwen3,
            rope_theta: 10_000.0,
            rope_scaling: RopeScaling::Default,
            max_positions: self.max_positions.unwrap_or(4096),
            bos_id: Some(BUILTIN_BOS_ID).filter(known),
            eos_ids: Some(BUILTIN_EOS_ID).filter(known).into_iter().collect(),
            pad_id: Some(BUILTIN_PAD_ID).filter(known),
        }
    }

    /// The spec with every key that gives a configuration.
    fn of_config(config: &ModelConfig, seed: u64) -> Self {
        Self {
            seed,
            architecture: Some(config.architecture),
            n_layers: Some(config.n_layers),
            n_heads: Some(config.n_heads),
            n_kv_heads: Some(config.n_kv_heads),
            hidden_size: Some(config.hidden_size),
            head_dim: Some(config.head_dim),
            vocab_size: Some(config.vocab_size),
            intermediate_size: Some(config.intermediate_size),
            max_positions: Some(config.max_positions),
            tied: Some(config.tie_word_embeddings),
        }
    }

    /// Random weights of the shape of a decoder. What is not shape is as in every random decoder: RoPE base and scaling,
    /// the term in the norms, biases by family.
    ///
    /// # Errors
    /// If so many weights are refused.
    pub fn like(config: &ModelConfig, seed: u64) -> Result<Self> {
        Self::of_config(config, seed).to_string().parse() // the checks of what is typed
    }

    /// The spec with every key, so that its hash changes when a default does.
    pub(super) fn written_out(&self) -> String {
        Self::of_config(&self.config(), self.seed).to_string()
    }

    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let size = || value.parse().ok();
        match key {
            "arch" => self.architecture = Some(Architecture::from_name(value)?),
            "layers" => self.n_layers = Some(size()?),
            "heads" => self.n_heads = Some(size()?),
            "kv_heads" => self.n_kv_heads = Some(size()?),
            "hidden" => self.hidden_size = Some(size()?),
            "head_dim" => self.head_dim = Some(size()?),
            "vocab" => self.vocab_size = Some(size()?),
            "ffn" => self.intermediate_size = Some(size()?),
            "context" => self.max_positions = Some(size()?),
            "tied" => self.tied = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}

impl FromStr for RandomSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = |expected: String| Error::UnknownModel { given: text.to_owned(), expected };
        let form = || unknown(format!("{PREFIX}SEED[,key=value...] with a whole number as seed"));
        let mut parts = text.strip_prefix(PREFIX).ok_or_else(form)?.split(',');
        let seed = parts.next().and_then(|seed| seed.parse().ok()).ok_or_else(form)?;
        let mut spec = Self { seed, ..Self::default() };
        let mut seen = Vec::new();
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if spec.set(key, value).is_none() || seen.contains(&key) {
                return Err(unknown(format!(
                    "`{part}` to be key=value, each key once: arch is {}, tied is true or false, the others are whole \
                     numbers (keys: {KEYS})",
                    Architecture::NAMES
                )));
            }
            seen.push(key);
        }
        let config = spec.config();
        limits::check(&config, Path::new(text))?;
        let per_layer = config.hidden_size * (3 * config.intermediate_size + 4 * config.n_heads * config.head_dim);
        let values = config.n_layers * per_layer + 2 * config.vocab_size * config.hidden_size;
        if values > MAX_VALUES {
            return Err(unknown(format!("at most {MAX_VALUES} weights, not {values}")));
        }
        Ok(spec)
    }
}

impl fmt::Display for RandomSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.seed)?;
        if let Some(architecture) = self.architecture {
            write!(f, ",arch={}", architecture.name())?;
        }
        let sizes = [
            ("layers", self.n_layers),
            ("heads", self.n_heads),
            ("kv_heads", self.n_kv_heads),
            ("hidden", self.hidden_size),
            ("head_dim", self.head_dim),
            ("vocab", self.vocab_size),
            ("ffn", self.intermediate_size),
            ("context", self.max_positions),
        ];
        for (key, size) in sizes.iter().filter_map(|&(key, size)| size.map(|size| (key, size))) {
            write!(f, ",{key}={size}")?;
        }
        self.tied.map_or(Ok(()), |tied| write!(f, ",tied={tied}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        text.parse::<RandomSpec>().unwrap_err().to_string()
    }

    #[test]
    fn what_is_shown_can_be_typed_again() {
        let text = "random:7,arch=qwen3,layers=2,kv_heads=1,ffn=96,tied=true";
        let spec: RandomSpec = text.parse().unwrap();
        assert_eq!(spec.to_string(), text);
        let reordered: RandomSpec = "random:7,tied=true,ffn=96,kv_heads=1,layers=2,arch=qwen3".parse().unwrap();
        assert_eq!(reordered, spec);
        let full: RandomSpec = spec.written_out().parse().unwrap();
        assert_eq!(full.config(), spec.config());
    }

    #[test]
    fn defaults_follow_what_is_given() {
        let shape = |text: &str| {
            let config = text.parse::<RandomSpec>().unwrap().config();
            (
                config.n_layers,
                config.n_heads,
                config.n_kv_heads,
                config.hidden_size,
                config.head_dim,
                config.intermediate_size,
            )
        };
        assert_eq!(shape("random:0"), (4, 4, 2, 64, 16, 128));
        assert_eq!(shape("random:0,heads=3,hidden=48"), (4, 3, 3, 48, 16, 96));
        assert_eq!(shape("random:0,heads=8"), (4, 8, 2, 64, 8, 128));
    }

    #[test]
    fn a_shape_is_taken_over() {
        let config = "random:7,arch=qwen3,layers=2,heads=6,hidden=96,vocab=300,tied=true"
            .parse::<RandomSpec>()
            .unwrap()
            .config();
        let like = RandomSpec::like(&config, 9).unwrap();
        assert_eq!((like.config(), like.seed), (config.clone(), 9));
        let huge = ModelConfig { n_layers: 1000, hidden_size: 8192, ..config };
        assert!(RandomSpec::like(&huge, 0).is_err());
    }

    #[test]
    fn bad_specs_say_which_part() {
        assert!(message("random:").contains("SEED"));
        assert!(message("random:x").contains("whole number"));
        assert!(message("random:1,layer=2").contains("`layer=2`"));
        assert!(message("random:1,layers").contains("`layers`"));
        assert!(message("random:1,layers=2,layers=3").contains("each key once"));
        assert!(message("random:1,heads=4,kv_heads=3").contains("divisor"));
        assert!(message("random:1,heads=0").contains("query heads: expected 1 to"));
        assert!(message("random:1,layers=1000,hidden=8192,heads=64").contains("at most 2147483648 weights"));
        assert!(message("random:1,hidden=18446744073709551615").contains("hidden size"));
    }
}
