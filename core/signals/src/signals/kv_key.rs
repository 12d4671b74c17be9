//! How much the channels of a token's keys, or values, differ, smoothed over the tokens before it.
//!
//! ```text
//! v(t)     = mean over layers and KV heads of Var_D(k_{l,h}(t))
//! score(t) = mean of the last 64 values of v, that of t included
//! ```
//!
//! with `k` the key after rotation, as cached, or the value (`kv_val`), and `Var_D` the unbiased variance over its `D` channels.
//!
//! Cost: `O(L H_kv D)` a token on the device and `O(64)` here; state: one window.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};
use epikv_stats::{Rolling, RollingSpec};

use super::signal::{Signal, SignalSpec};
use super::smoother::DEFAULT_WINDOW;
use crate::error::{Error, Result};
use crate::taps::Chunk;

pub(crate) static SPEC: SignalSpec = SignalSpec {
    name: "kv_key",
    doc: "Rolling mean (window 64) of the variance of the cached key over its channels, averaged over layers and KV \
          heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), the key-variance variant; `kv_key` in its authors' code",
};

pub(crate) static VALUE: SignalSpec = SignalSpec {
    name: "kv_val",
    doc: "Rolling mean (window 64) of the variance of the value over its channels, averaged over layers and KV heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), the value-variance variant; `kv_val` in its authors' code",
};

/// The score of a model.
#[derive(Debug, Clone)]
pub struct KvKey {
    spec: &'static SignalSpec,
    point: fn(usize) -> TapPoint,
    n_layers: usize,
    window: Rolling,
}

impl KvKey {
    /// The score of a model of `n_layers`.
    ///
    /// # Errors
    /// If the model has no layers.
    pub fn new(n_layers: usize) -> Result<Self> {
        Self::of(&SPEC, TapPoint::KeyPostRope, n_layers)
    }

    /// The same of the values.
    ///
    /// # Errors
    /// If the model has no layers.
    pub fn value(n_layers: usize) -> Result<Self> {
        Self::of(&VALUE, TapPoint::Value, n_layers)
    }

    fn of(spec: &'static SignalSpec, point: fn(usize) -> TapPoint, n_layers: usize) -> Result<Self> {
        if n_layers == 0 {
            return Err(Error::Layer { signal: spec.name, layer: 0, n_layers });
        }
        Ok(Self { spec, point, n_layers, window: Rolling::new(RollingSpec::new(DEFAULT_WINDOW)?) })
    }

    /// The score of the next token from its mean variance.
    fn next(&mut self, variance: f64) -> Option<f32> {
        // A value that is not finite would stay in the window for 64 tokens.
        variance.is_finite().then(|| self.window.push(variance)).flatten().map(|point| point.mean as f32)
    }
}

impl Signal for KvKey {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        let tap = |plan: ProbePlan, layer| plan.tap((self.point)(layer), Reduce::Variance);
        (0..self.n_layers).fold(ProbePlan::default(), tap)
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let mut sums = vec![0.0; chunk.len()];
        let mut terms = 0;
        for layer in 0..self.n_layers {
            let (of_layer, n_heads) = chunk.head_sums(self.spec.name, (self.point)(layer), Reduce::Variance)?;
            sums.iter_mut().zip(of_layer).for_each(|(sum, of_layer)| *sum += of_layer);
            terms += n_heads;
        }
        Ok(sums.into_iter().map(|sum| self.next(sum / terms as f64)).collect())
    }

    fn reset(&mut self) {
        self.window.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_runs_over_what_came_so_far() {
        let mut score = KvKey::new(2).expect("layers");
        assert_eq!([1.0, 3.0, 8.0].map(|v| score.next(v)), [Some(1.0), Some(2.0), Some(4.0)]);
        assert_eq!((score.next(f64::NAN), score.next(4.0)), (None, Some(4.0)));
        score.reset();
        assert_eq!(score.next(7.0), Some(7.0));
        assert!(KvKey::new(0).is_err());
    }
}
