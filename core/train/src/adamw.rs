//! Adam with decoupled weight decay, over one flat vector of weights.

use crate::layout::ParameterLayout;

/// Constants of the optimiser.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWOptions {
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub eps: f32,
    /// Share of a matrix that is taken away a step, times the learning rate.
    pub weight_decay: f32,
    /// Gradients longer than this are shortened to it.
    pub max_norm: f32,
}

impl Default for AdamWOptions {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.98, eps: 1e-8, weight_decay: 0.01, max_norm: 1.0 }
    }
}

/// The optimiser's state.
///
/// # References
/// Loshchilov and Hutter 2019, algorithm 2.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamW {
    /// Steps taken.
    pub step: usize,
    /// First moments.
    pub first: Vec<f32>,
    /// Second moments.
    pub second: Vec<f32>,
}

impl AdamW {
    /// The state before the first step.
    pub fn new(n_weights: usize) -> Self {
        Self { step: 0, first: vec![0.0; n_weights], second: vec![0.0; n_weights] }
    }

    /// Moves the weights one step; returns the length of the gradient before it was shortened.
    pub fn update(
        &mut self,
        layout: &ParameterLayout,
        weights: &mut [f32],
        gradient: &[f32],
        learning_rate: f64,
        options: &AdamWOptions,
    ) -> f64 {
        let norm = gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt();
        let shorten = (f64::from(options.max_norm) / norm.max(1e-12)).min(1.0) as f32;
        self.step += 1;
        let unbias = |beta: f32| 1.0 - f64::from(beta).powf(self.step as f64);
        let (b1, b2, eps) = (options.beta1, options.beta2, options.eps);
        let root = unbias(b2).sqrt();
        let (rate, root) = ((learning_rate / unbias(b1)) as f32, root as f32);
        for parameter in layout.parameters() {
            let keep = if parameter.decays() { 1.0 - learning_rate as f32 * options.weight_decay } else { 1.0 };
            let moments = parameter.of_mut(&mut self.first).iter_mut().zip(parameter.of_mut(&mut self.second));
            let values = parameter.of_mut(weights).iter_mut().zip(parameter.of(gradient));
            for ((m, v), (w, &g)) in moments.zip(values) {
                let g = g * shorten;
                *m = b1 * *m + (1.0 - b1) * g;
                *v = b2 * *v + (1.0 - b2) * g * g;
                *w = keep * *w - rate * *m / (v.sqrt() / root + eps);
            }
        }
        norm
    }
}
