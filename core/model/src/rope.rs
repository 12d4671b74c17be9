//! Rotary frequencies and the angles of positions.

use crate::config::{ModelConfig, RopeScaling};

/// Inverse frequencies of a model, one for a channel pair.
#[derive(Debug, Clone)]
pub struct Rope {
    /// `[D/2]`, rounded to f32 as Transformers stores them.
    inv_freq: Vec<f32>,
}

impl Rope {
    /// `inv_freq[i] = theta^(-2i/D)`, then scaled as the configuration says.
    ///
    /// # References
    /// Su et al. 2021, section 3.2.2; for `llama3` the rule of the Llama 3.1 release: wavelengths longer than
    /// `original / low_freq_factor` are divided by `factor`, shorter than `original / high_freq_factor` are kept, and
    /// between them the two are mixed linearly in `original / wavelength`.
    pub fn new(config: &ModelConfig) -> Self {
        let d = config.head_dim;
        let inv_freq = (0..d / 2)
            .map(|i| {
                let base = 1.0 / config.rope_theta.powf(2.0 * i as f64 / d as f64);
                scale(base, i, &config.rope_scaling) as f32
            })
            .collect();
        Self { inv_freq }
    }

    /// Cosines and sines for positions, `[positions, D/2]` each.
    ///
    /// Angles are products in f32, as in Transformers, so that late positions agree with it.
    pub fn angles(&self, positions: impl Iterator<Item = u32>) -> (Vec<f32>, Vec<f32>) {
        let angles = positions.flat_map(|p| self.inv_freq.iter().map(move |f| f64::from(p as f32 * f)));
        angles.map(|a| (a.cos() as f32, a.sin() as f32)).unzip()
    }

    /// Channel pairs `D/2`.
    pub fn n_pairs(&self) -> usize {
        self.inv_freq.len()
    }
}

fn scale(base: f64, _pair: usize, scaling: &RopeScaling) -> f64 {
    match *scaling {
        RopeScaling::Default => base,
        RopeScaling::Linear { factor } => base / factor,
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_positions } => {
            let original = original_max_positions as f64;
            let wavelength = std::f64::consts::TAU / base;
            if wavelength < original / high_freq_factor {
                base
            } else if wavelength > original / low_freq_factor {
                base / factor
            } else {
                let smooth = (original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
                (1.0 - smooth) * base / factor + smooth * base
            }
        }
    }
}
