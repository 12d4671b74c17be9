//! One step of training: a batch spread over threads, gradients summed in order, one move of the weights.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use epikv_model::{Device, Tensor};

use crate::adamw::{AdamW, AdamWOptions};
use crate::attention::Angles;
use crate::example::{Example, Packed, parts};
use crate::forward;
use crate::layout::{Holds, ParameterLayout};
use crate::loss::{Score, cross_entropy};
use crate::pointwise::read;
use epikv_model::config::{Architecture, ModelConfig};
use epikv_model::error::{Error, Result};

/// How a batch is worked through. Only `rows_a_part` and `optimiser` change bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainerOptions {
    /// Threads over the parts of a batch.
    pub n_threads: usize,
    /// Rows that go through one forward pass at most, unless one example alone is longer.
    pub rows_a_part: usize,
    /// Constants of the optimiser.
    pub optimiser: AdamWOptions,
}

impl Default for TrainerOptions {
    fn default() -> Self {
        Self { n_threads: 2, rows_a_part: 768, optimiser: AdamWOptions::default() }
    }
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepReport {
    /// How well the batch was predicted, before the step.
    pub score: Score,
    /// Length of the gradient.
    pub gradient_norm: f64,
}

/// A model under training.
#[derive(Debug, Clone)]
pub struct Trainer {
    pub(crate) config: ModelConfig,
    pub(crate) layout: ParameterLayout,
    pub(crate) weights: Vec<f32>,
    pub(crate) optimiser: AdamW,
    options: TrainerOptions,
    angles: Arc<Angles>,
}

impl Trainer {
    /// A new model.
    ///
    /// # Errors
    /// If the shape is not that of a Llama model with tied embeddings and without biases, which is all that is trained here.
    pub fn new(config: ModelConfig, seed: u64, options: TrainerOptions) -> Result<Self> {
        let weights = ParameterLayout::new(&config).initial(seed);
        let optimiser = AdamW::new(weights.len());
        Self::assemble(config, weights, optimiser, options)
    }

    pub(crate) fn assemble(
        config: ModelConfig,
        weights: Vec<f32>,
        optimiser: AdamW,
        options: TrainerOptions,
    ) -> Result<Self> {
        let biased = config.qkv_bias || config.out_bias || config.mlp_bias || config.qk_norm;
        if config.architecture != Architecture::Llama || biased || !config.tie_word_embeddings {
            return Err(Error::Request {
                what: "model to train",
                expected: "a Llama shape with tied embeddings and without biases".to_owned(),
                got: format!("{config:?}"),
            });
        }
        let angles = forward::angles(&config, config.max_positions);
        Ok(Self { layout: ParameterLayout::new(&config), config, weights, optimiser, options, angles })
    }

    /// Shape and constants.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The weights, in the order of the layout.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Where each weight stands.
    pub fn layout(&self) -> &ParameterLayout {
        &self.layout
    }

    /// Steps taken.
    pub fn n_steps(&self) -> usize {
        self.optimiser.step
    }

    /// Makes the model deeper by copies of its blocks that share what a block wrote: its function changes little.
    ///
    /// # Errors
    /// If there are fewer layers than before.
    pub fn grow(&mut self, n_layers: usize) -> Result<()> {
        if n_layers < self.config.n_layers {
            return Err(Error::Request {
                what: "layers to grow to",
                expected: format!("at least {}", self.config.n_layers),
                got: n_layers.to_string(),
            });
        }
        let config = ModelConfig { n_layers, ..self.config.clone() };
        let deeper = ParameterLayout::new(&config);
        self.weights = self.layout.grown(&deeper, &self.weights, Holds::Weights);
        self.optimiser.first = self.layout.grown(&deeper, &self.optimiser.first, Holds::FirstMoments);
        self.optimiser.second = self.layout.grown(&deeper, &self.optimiser.second, Holds::SecondMoments);
        (self.config, self.layout) = (config, deeper);
        Ok(())
    }

    /// One step on a batch.
    pub fn step(&mut self, batch: &[Example], learning_rate: f64) -> Result<StepReport> {
        let total: f64 = batch.iter().flat_map(|e| &e.weights).map(|&w| f64::from(w)).sum();
        let scale = (1.0 / total.max(1e-12)) as f32;
        let parts = self.in_parts(batch, |examples| self.gradient(examples, scale))?;
        let mut gradient = vec![0.0; self.weights.len()];
        let mut score = Score::default();
        for (part, part_score) in parts {
            gradient.iter_mut().zip(part).for_each(|(sum, g)| *sum += g);
            score.add(&part_score);
        }
        let gradient_norm =
            self.optimiser.update(&self.layout, &mut self.weights, &gradient, learning_rate, &self.options.optimiser);
        Ok(StepReport { score, gradient_norm })
    }

    /// For each example whether each of its tokens was the likeliest given those before; `None` where nothing was to be
    /// predicted, and for the first.
    pub fn predicted(&self, examples: &[Example]) -> Result<Vec<Vec<Option<bool>>>> {
        let parts = self.in_parts(examples, |examples| {
            let packed = Packed::new(examples);
            let mut logits = read(&self.logits(&packed)?, <[f32]>::to_vec)?;
            let (_, right) = cross_entropy(&mut logits, &packed.targets, &packed.weights, 1.0);
            let mut right = right.into_iter();
            let row = |&n: &usize| std::iter::once(None).chain(right.by_ref().take(n)).collect();
            Ok(packed.lengths.iter().map(row).collect::<Vec<_>>())
        })?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Logits of packed examples, `[T, vocab]`.
    pub(crate) fn logits(&self, packed: &Packed) -> Result<Tensor> {
        let variables = self.layout.variables(&self.weights)?;
        let logits = forward::logits(&self.config, &variables, &packed.inputs, &packed.lengths, &self.angles)?;
        Ok(logits.detach())
    }

    /// Gradient of `scale * loss` over some examples.
    pub(crate) fn gradient(&self, examples: &[Example], scale: f32) -> Result<(Vec<f32>, Score)> {
        let packed = Packed::new(examples);
        let variables = self.layout.variables(&self.weights)?;
        let logits = forward::logits(&self.config, &variables, &packed.inputs, &packed.lengths, &self.angles)?;
        let mut d_logits = read(&logits, <[f32]>::to_vec)?;
        let (score, _) = cross_entropy(&mut d_logits, &packed.targets, &packed.weights, scale);
        // The gradient of a linear form is its coefficients, so this one has the gradient of the loss at the logits.
        let form = (&logits * Tensor::from_vec(d_logits, logits.shape(), &Device::Cpu)?)?.sum_all()?;
        let gradients = form.backward()?;
        let mut flat = vec![0.0; self.weights.len()];
        for (parameter, variable) in self.layout.parameters().iter().zip(&variables) {
            if let Some(gradient) = gradients.get(variable) {
                read(gradient, |g| parameter.of_mut(&mut flat).copy_from_slice(g))?;
            }
        }
        Ok((flat, score))
    }

    /// Runs `work` on the parts of a batch, several at a time; results in the order of the parts.
    fn in_parts<R: Send>(&self, batch: &[Example], work: impl Fn(&[Example]) -> Result<R> + Sync) -> Result<Vec<R>> {
        let longest = batch.iter().map(Example::n_rows).max().unwrap_or(0);
        if longest > self.config.max_positions {
            return Err(Error::ContextExceeded { position: longest, max_positions: self.config.max_positions });
        }
        let parts = parts(batch, self.options.rows_a_part);
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..self.options.n_threads.clamp(1, parts.len().max(1)) {
                scope.spawn(|| {
                    while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = work(&batch[part.clone()]);
                        results.lock().unwrap_or_else(PoisonError::into_inner).push((part.start, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(start, _)| *start);
        results.into_iter().map(|(_, result)| result).collect()
    }
}
