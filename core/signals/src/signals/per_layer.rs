//! Signals that read one tap point of one layer and keep no state: what most rows of the table are.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};

use super::signal::{Signal, SignalSpec};
use crate::error::{Error, Result};
use crate::taps::Chunk;

/// What is made of the recorded values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// The step from the predecessor, as recorded.
    Step,
    /// Mean over the values of a token, one a head.
    MeanOverHeads,
    /// Unbiased variance over the values of a token, one a head.
    VarianceOverHeads,
}

/// A stateless signal at one layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PerLayer {
    spec: &'static SignalSpec,
    point: TapPoint,
    reduce: Reduce,
    form: Form,
}

impl PerLayer {
    /// The step from the token before at a `[T, d]` point.
    pub(crate) fn step(
        spec: &'static SignalSpec,
        point: fn(usize) -> TapPoint,
        reduce: Reduce,
        at: At,
    ) -> Result<Box<dyn Signal>> {
        Self::checked(spec, point, reduce, Form::Step, at)
    }

    /// A reduction over the channels, mean over the heads of a `[T, H, D]` point.
    pub(crate) fn head_mean(
        spec: &'static SignalSpec,
        point: fn(usize) -> TapPoint,
        reduce: Reduce,
        at: At,
    ) -> Result<Box<dyn Signal>> {
        Self::checked(spec, point, reduce, Form::MeanOverHeads, at)
    }

    /// A reduction over the channels, unbiased variance over the heads of a `[T, H, D]` point.
    pub(crate) fn head_variance(
        spec: &'static SignalSpec,
        point: fn(usize) -> TapPoint,
        reduce: Reduce,
        at: At,
    ) -> Result<Box<dyn Signal>> {
        Self::checked(spec, point, reduce, Form::VarianceOverHeads, at)
    }

    fn checked(
        spec: &'static SignalSpec,
        point: fn(usize) -> TapPoint,
        reduce: Reduce,
        form: Form,
        at: At,
    ) -> Result<Box<dyn Signal>> {
        let layer = at.checked(spec.name)?;
        Ok(Box::new(Self { spec, point: point(layer), reduce, form }))
    }
}

/// A layer of a model of some depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The layer, 0-based.
    pub layer: usize,
    /// Layers of the model.
    pub n_layers: usize,
}

impl At {
    /// The layer, once it is known that the model has it.
    pub(crate) fn checked(self, signal: &'static str) -> Result<usize> {
        let Self { layer, n_layers } = self;
        if layer < n_layers { Ok(layer) } else { Err(Error::Layer { signal, layer, n_layers }) }
    }
}

impl Signal for PerLayer {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        ProbePlan::default().tap(self.point, self.reduce)
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let Self { spec, point, reduce, .. } = *self;
        match self.form {
            Form::Step => Ok(chunk.steps(spec.name, point, reduce)?.collect()),
            Form::MeanOverHeads => {
                let (sums, n_heads) = chunk.head_sums(spec.name, point, reduce)?;
                let mean = |sum: f64| Some((sum / n_heads as f64) as f32).filter(|v| v.is_finite());
                Ok(sums.into_iter().map(mean).collect())
            }
            Form::VarianceOverHeads => chunk.each(spec.name, point, reduce, variance),
        }
    }

    fn reset(&mut self) {}
}

/// `NaN` for a single head, which has none.
fn variance(heads: &[f32]) -> f64 {
    let mean = heads.iter().map(|&v| f64::from(v)).sum::<f64>() / heads.len() as f64;
    heads.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / (heads.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_heads_by_hand() {
        assert_eq!(variance(&[1.0, 2.0, 6.0]).to_bits(), 7.0_f64.to_bits());
        assert!(variance(&[1.0]).is_nan());
    }

    #[test]
    fn a_layer_that_the_model_lacks_is_refused() {
        let error = super::super::kv_var::value(At { layer: 4, n_layers: 4 }).expect_err("layers are 0 to 3");
        assert_eq!(error.to_string(), "signal kv_val_var: expected a layer below 4, got 4");
    }
}
