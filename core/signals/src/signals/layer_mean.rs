//! The mean of a signal over all layers, as the authors' tables have it for keys and values: `1/L sum_l s_l(t)`.
//!
//! Undefined at a token where the signal of any layer is.

use epikv_model::taps::ProbePlan;

use super::signal::{Signal, SignalSpec};
use crate::error::Result;
use crate::taps::Chunk;

/// A signal of every layer, averaged.
#[derive(Debug)]
pub(crate) struct LayerMean {
    spec: &'static SignalSpec,
    layers: Vec<Box<dyn Signal>>,
}

impl LayerMean {
    /// The mean of the signals of all layers, which share a row of the table.
    pub(crate) fn new(spec: &'static SignalSpec, layers: Vec<Box<dyn Signal>>) -> Self {
        Self { spec, layers }
    }
}

impl Signal for LayerMean {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        self.layers.iter().fold(ProbePlan::default(), |plan, layer| plan.union(&layer.plan()))
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let mut sums = vec![Some(0.0_f64); chunk.len()];
        for layer in &mut self.layers {
            for (sum, value) in sums.iter_mut().zip(layer.push(chunk)?) {
                *sum = sum.zip(value).map(|(sum, value)| sum + f64::from(value));
            }
        }
        let n = self.layers.len() as f64;
        Ok(sums.into_iter().map(|sum| sum.map(|sum| (sum / n) as f32)).collect())
    }

    fn reset(&mut self) {
        self.layers.iter_mut().for_each(|layer| layer.reset());
    }
}
