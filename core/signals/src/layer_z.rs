//! The rolling z-score of the step at one layer, kept or turned around: what a choice among single layers can give.
//!
//! ```text
//! score(t) = z_l(t)   or   -z_l(t)          z_l as in `epikv`: hs_l2 over its last 64 values
//! ```
//!
//! It has no row in the table, since the layer is a parameter; `epikv_a` and `epikv_b` are this at layers 10 and 21.
//!
//! Cost: `O(d)` a token on the device and `O(64)` here; state: one window.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};
use epikv_stats::{Rolling, RollingSpec};

use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::signal::{Signal, SignalSpec};

/// Tokens that the rolling statistic sees.
const WINDOW: usize = 64;

static SPEC: SignalSpec = SignalSpec {
    name: "layer_z",
    doc: "Rolling z-score (window 64) of hs_l2 at one layer, or its negative",
    unit: "1",
    source: "the part of EpiKV (arXiv 2606.26472), section 4, that belongs to one layer",
};

/// The score at one layer of a model.
#[derive(Debug, Clone)]
pub struct LayerZ {
    layer: usize,
    sign: f64,
    window: Rolling,
}

impl LayerZ {
    /// The z-score at a layer of a model of `n_layers`, with a minus if `minus`.
    ///
    /// # Errors
    /// If the model lacks the layer.
    pub fn new(layer: usize, minus: bool, n_layers: usize) -> Result<Self> {
        if layer >= n_layers {
            return Err(Error::Layer { signal: SPEC.name, layer, n_layers });
        }
        let sign = if minus { -1.0 } else { 1.0 };
        Ok(Self { layer, sign, window: Rolling::new(RollingSpec::new(WINDOW)?) })
    }

    /// The score of the next token from its step norm.
    fn next(&mut self, step: Option<f32>) -> Option<f32> {
        let z = self.window.push(f64::from(step?))?.z;
        Some((self.sign * z) as f32)
    }
}

impl Signal for LayerZ {
    fn spec(&self) -> &'static SignalSpec {
        &SPEC
    }

    fn plan(&self) -> ProbePlan {
        ProbePlan::default().tap(TapPoint::ResidPost(self.layer), Reduce::StepNorm)
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let steps = chunk.steps(SPEC.name, TapPoint::ResidPost(self.layer), Reduce::StepNorm)?;
        Ok(steps.map(|step| self.next(step)).collect())
    }

    fn reset(&mut self) {
        self.window.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let mut plus = LayerZ::new(3, false, 4).expect("a layer");
        let mut minus = LayerZ::new(3, true, 4).expect("a layer");
        for (step, z) in [(Some(1.0), Some(0.0)), (None, None), (Some(3.0), Some(1.0))] {
            let (up, down) = (plus.next(step), minus.next(step));
            assert_eq!((up.map(f32::round), down.map(|z| -z)), (z, up));
        }
        assert!(matches!(LayerZ::new(4, true, 4), Err(Error::Layer { layer: 4, n_layers: 4, .. })));
    }
}
