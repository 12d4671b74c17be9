//! How far the residual stream moves from one token to the next.
//!
//! ```text
//! g_l(t) = || x_{l+1}(t) - x_{l+1}(t-1) ||_2
//! ```
//!
//! with `x_{l+1}` the residual stream after block `l` (0-based), before the final norm for the last block too. The first
//! token that a cache ever takes has no predecessor and no value; the first decoded token's is the last prompt token.
//!
//! **Differs from the published runs in:** the last layer, which they read after the final norm.
//!
//! Cost: `O(d)` a token, on the device; one number leaves it.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};

use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::signal::{Signal, SignalSpec};

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "hs_l2",
    doc: "L2 norm of the step of the residual stream after block l from the token before: |x(t) - x(t-1)|",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), section 3",
};

/// The signal at one layer. It holds no state: the predecessor is kept with the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HsL2 {
    layer: usize,
}

impl HsL2 {
    /// The signal after block `layer` of a model of `n_layers`.
    ///
    /// # Errors
    /// If the model has no such layer.
    pub fn new(layer: usize, n_layers: usize) -> Result<Self> {
        if layer < n_layers { Ok(Self { layer }) } else { Err(Error::Layer { signal: SPEC.name, layer, n_layers }) }
    }
}

impl Signal for HsL2 {
    fn spec(&self) -> &'static SignalSpec {
        &SPEC
    }

    fn plan(&self) -> ProbePlan {
        ProbePlan::default().tap(TapPoint::ResidPost(self.layer), Reduce::StepNorm)
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        Ok(chunk.step_norms(SPEC.name, TapPoint::ResidPost(self.layer))?.collect())
    }

    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_that_the_model_lacks_is_refused() {
        assert!(HsL2::new(3, 4).is_ok());
        let error = HsL2::new(4, 4).expect_err("layers are 0 to 3");
        assert_eq!(error.to_string(), "signal hs_l2: expected a layer below 4, got 4");
    }
}
