//! How spread out the channels of a token's own key or value are.
//!
//! ```text
//! v_l(t) = 1/H_kv sum_h  1/(D-1) sum_d (x_(h,d)(t) - mean_d x_(h,d)(t))^2
//! ```
//!
//! with `x` the key of layer `l` after rotation, as it is cached, or the value. The number belongs to the token itself: it
//! is known as soon as the token is fed and never changes.
//!
//! **Differs from the published runs in:** they average over the layers as well; here each layer has its own column, and
//! the mean over layers is left to whoever wants it.
//!
//! Cost: `O(H_kv D)` a token, on the device; `H_kv` numbers leave it.

use epikv_model::taps::{ProbePlan, Reduce, TapPoint};

use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::signal::{Signal, SignalSpec};

pub(crate) static KEY: SignalSpec = SignalSpec {
    name: "kv_key_var",
    doc: "Unbiased variance over the channels of the token's key after rotation at layer l, mean over KV heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), section 3; `kv_key_var` in its authors' code before the mean over layers",
};

pub(crate) static VALUE: SignalSpec = SignalSpec {
    name: "kv_val_var",
    doc: "Unbiased variance over the channels of the token's value at layer l, mean over KV heads",
    unit: "1",
    source: "EpiKV (arXiv 2606.26472), section 3; `kv_val_var` in its authors' code before the mean over layers",
};

/// The signal at one layer. It holds no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvVar {
    spec: &'static SignalSpec,
    point: TapPoint,
}

impl KvVar {
    /// The variance of the keys of layer `layer` of a model of `n_layers`.
    ///
    /// # Errors
    /// If the model has no such layer.
    pub fn key(layer: usize, n_layers: usize) -> Result<Self> {
        Self::checked(&KEY, TapPoint::KeyPostRope(layer), layer, n_layers)
    }

    /// The variance of the values of layer `layer` of a model of `n_layers`.
    ///
    /// # Errors
    /// As [`KvVar::key`].
    pub fn value(layer: usize, n_layers: usize) -> Result<Self> {
        Self::checked(&VALUE, TapPoint::Value(layer), layer, n_layers)
    }

    fn checked(spec: &'static SignalSpec, point: TapPoint, layer: usize, n_layers: usize) -> Result<Self> {
        if layer < n_layers {
            Ok(Self { spec, point })
        } else {
            Err(Error::Layer { signal: spec.name, layer, n_layers })
        }
    }
}

impl Signal for KvVar {
    fn spec(&self) -> &'static SignalSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        ProbePlan::default().tap(self.point, Reduce::Variance)
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        chunk.mean_variances(self.spec.name, self.point)
    }

    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use epikv_model::Device;
    use epikv_model::batch::{LogitsOf, RowInput};
    use epikv_model::cache::{Capacity, Scope};
    use epikv_model::decoder::Decoder;
    use epikv_model::linear::WeightFormat;
    use epikv_model::load::open;

    use super::*;

    #[test]
    fn equals_two_passes_over_the_full_tensor() {
        let (config, weights, _) = open(&"random:3,layers=2,vocab=64".parse().expect("a spec")).expect("a model");
        let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit");
        let mut cache = decoder.cache(Scope::Global, Capacity::Growing).expect("a cache");
        for (mut signal, point) in [
            (KvVar::key(1, 2).expect("a layer"), TapPoint::KeyPostRope(1)),
            (KvVar::value(0, 2).expect("a layer"), TapPoint::Value(0)),
        ] {
            let plan = signal.plan().tap(point, Reduce::Full);
            let input = RowInput::next(&cache, vec![5, 9, 33], LogitsOf::None);
            let output = decoder.forward(&[input], &mut [&mut cache], &plan).expect("a pass");
            let got = signal.push(&Chunk::new(&output.taps, 0..3)).expect("what the plan asks for");
            let full: Vec<Vec<Vec<f32>>> =
                output.taps.get(point, Reduce::Full).expect("asked for").to_vec3().expect("f32");
            for (heads, got) in full.iter().zip(got) {
                let variance = |x: &Vec<f32>| {
                    let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / x.len() as f64;
                    x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / (x.len() - 1) as f64
                };
                let want = heads.iter().map(variance).sum::<f64>() / heads.len() as f64;
                assert!((f64::from(got.expect("finite")) - want).abs() < 1e-5 * want, "{signal:?}");
            }
            assert!(signal.push(&Chunk::new(&output.taps, 2..4)).is_err(), "the pass has three tokens");
        }
    }

    #[test]
    fn a_layer_that_the_model_lacks_is_refused() {
        let error = KvVar::value(4, 4).expect_err("layers are 0 to 3");
        assert_eq!(error.to_string(), "signal kv_val_var: expected a layer below 4, got 4");
    }
}
