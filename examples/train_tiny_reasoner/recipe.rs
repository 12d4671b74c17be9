//! The recipe: what is trained on, in which order, at which depth and rate.

use anyhow::{Context, Result};
use epikv_model::config::{Architecture, ModelConfig, RopeScaling};
use epikv_model::sampler::RandomStream;
use epikv_tasks::tiny::lesson::Lesson;
use epikv_tasks::tiny::vocabulary;
use epikv_train::{AdamWOptions, Example, TrainerOptions};
use serde::Deserialize;

/// Added to the recipe's seed.
const TRAINING_SEEDS: u64 = 1 << 40;

/// The whole recipe.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    pub(crate) seed: u64,
    pub(crate) n_threads: usize,
    pub(crate) rows_a_part: usize,
    pub(crate) answer_weight: f32,
    pub(crate) weight_decay: f32,
    pub(crate) minutes_a_checkpoint: f64,
    /// Held-out problems of each kind of evaluation: teacher-forced, and written by the model itself.
    pub(crate) n_scored: usize,
    pub(crate) n_generated: usize,
    pub(crate) minutes_an_evaluation: f64,
    pub(crate) model: Shape,
    pub(crate) phase: Vec<Phase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    pub(crate) hidden_size: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) n_heads: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) rope_theta: f64,
    pub(crate) max_positions: usize,
}

/// A stretch of training with one depth and one mixture of lessons.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) n_layers: usize,
    pub(crate) n_steps: usize,
    /// Tokens of a batch, about.
    pub(crate) batch_tokens: usize,
    /// Lessons and their shares of the sequences.
    pub(crate) lessons: Vec<(String, f64)>,
    /// Learning rate at its beginning and at its end, joined by half a cosine.
    pub(crate) rates: (f64, f64),
    pub(crate) warm_up: usize,
    /// Level that is evaluated.
    pub(crate) evaluate: Option<String>,
}

impl Phase {
    pub(crate) fn learning_rate(&self, step: usize) -> f64 {
        let (from, to) = self.rates;
        let through = step as f64 / self.n_steps.max(1) as f64;
        let rate = to + (from - to) * 0.5 * (1.0 + (std::f64::consts::PI * through).cos());
        rate * ((step + 1) as f64 / self.warm_up.max(1) as f64).min(1.0)
    }

    /// Sequences of step `step`, until there are enough tokens. Their seed is far from any that a user types, so that no
    /// problem of `epikv problems` was ever trained on.
    pub(crate) fn batch(&self, recipe: &Recipe, step: usize) -> Result<Vec<Example>> {
        const MOST_SEQUENCES: u64 = 1 << 12;
        let total: f64 = self.lessons.iter().map(|(_, share)| share).sum();
        let (mut batch, mut n_tokens, mut n) = (Vec::new(), 0, 0);
        while n_tokens < self.batch_tokens {
            let index = step as u64 * MOST_SEQUENCES + n;
            let mut u = RandomStream { seed: recipe.seed, problem: index, sample: 200 }.uniform(0) * total;
            let lesson = self.lessons.iter().find(|(_, share)| {
                u -= share;
                u < 0.0
            });
            let (name, _) = lesson.or(self.lessons.last()).context("a phase without lessons")?;
            let lesson = Lesson::from_name(name).with_context(|| format!("unknown lesson {name}"))?;
            let (tokens, weights) = lesson.sequence(TRAINING_SEEDS + recipe.seed, index, recipe.answer_weight);
            n_tokens += tokens.len();
            batch.push(Example { tokens, weights });
            n += 1;
        }
        Ok(batch)
    }
}

impl Recipe {
    pub(crate) fn config(&self, n_layers: usize) -> ModelConfig {
        let shape = &self.model;
        ModelConfig {
            architecture: Architecture::Llama,
            vocab_size: vocabulary::TOKENS.len(),
            hidden_size: shape.hidden_size,
            n_layers,
            n_heads: shape.n_heads,
            n_kv_heads: shape.n_kv_heads,
            head_dim: shape.head_dim,
            intermediate_size: shape.intermediate_size,
            rms_norm_eps: 1e-5,
            tie_word_embeddings: true,
            qkv_bias: false,
            out_bias: false,
            mlp_bias: false,
            qk_norm: false,
            rope_theta: shape.rope_theta,
            rope_scaling: RopeScaling::Default,
            max_positions: shape.max_positions,
            bos_id: Some(vocabulary::BOS),
            eos_ids: vec![vocabulary::EOS],
            pad_id: Some(vocabulary::PAD),
        }
    }

    pub(crate) fn options(&self) -> TrainerOptions {
        let optimiser = AdamWOptions { weight_decay: self.weight_decay, ..AdamWOptions::default() };
        TrainerOptions { n_threads: self.n_threads, rows_a_part: self.rows_a_part, optimiser }
    }

    /// The phase that a step belongs to, and how many steps of it came before.
    pub(crate) fn phase(&self, step: usize) -> Option<(&Phase, usize)> {
        let mut first = 0;
        self.phase.iter().find_map(|phase| {
            let within = step - first;
            first += phase.n_steps;
            (step < first).then_some((phase, within))
        })
    }
}
