//! Linear layers in packed weights.

use candle_core::Tensor;
use epikv_kernels::gemm::{PackedWeights, matmul};

use super::elements::{from_rows, with_f32};
use crate::error::{Error, Result};
use crate::linear::{Layer, WeightFormat};

/// Weights packed for the row-invariant kernel, in either format.
#[derive(Debug)]
pub(super) struct Packed {
    weights: PackedWeights,
    /// `[N]`.
    bias: Option<Tensor>,
}

impl Packed {
    /// Packs a matrix `[N, K]`.
    pub(super) fn new(matrix: &Tensor, bias: Option<Tensor>, format: WeightFormat) -> Result<Self> {
        let (n, k) = matrix.dims2()?;
        let weights = match format {
            WeightFormat::F32 => with_f32(matrix, |w| PackedWeights::f32(w, n, k))?,
            WeightFormat::Q8_0 => {
                let to_f16 = |v: f32| half::f16::from_f32(v).to_f32();
                with_f32(matrix, |w| PackedWeights::q8(w, n, k, to_f16))?.map_err(|e| Error::Request {
                    what: "--weights q8_0",
                    expected: "inner sizes that are multiples of 32".to_owned(),
                    got: e.n_inputs.to_string(),
                })?
            }
        };
        Ok(Self { weights, bias })
    }
}

impl Layer for Packed {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let weights = &self.weights;
        let rows = x.dim(0)?;
        let mut out = vec![0.0; rows * weights.n_outputs()];
        with_f32(x, |x| {
            if let Some(bias) = &self.bias {
                with_f32(bias, |bias| matmul(x, weights, Some(bias), &mut out))
            } else {
                matmul(x, weights, None, &mut out);
                Ok(())
            }
        })??;
        from_rows(out, &[rows, weights.n_outputs()])
    }

    fn forward_f32(&self, x: &Tensor) -> Result<Tensor> {
        self.forward(x)
    }

    fn bytes(&self) -> usize {
        self.weights.bytes()
    }
}
