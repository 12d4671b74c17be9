//! Linear layers: packed kernels on the CPU, tensor products elsewhere.

use candle_core::{Device, Tensor};
use epikv_kernels::gemm::{PackedWeights, matmul};

use crate::error::{Error, Result};
use crate::ops::{from_rows, with_f32};

epikv_words::words! {
    /// How weights are held on the CPU.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum WeightFormat {
        /// f32, four bytes a weight.
        #[default]
        F32 = "f32",
        /// Eight bits a weight, with one scale for 32 weights.
        ///
        /// A product equals the f32 product with the rounded weights.
        Q8_0 = "q8_0",
    }
}

/// `y = x W^T + b`.
#[derive(Debug, Clone)]
pub struct Linear {
    weights: Weights,
    /// `[N]`.
    bias: Option<Tensor>,
}

/// Weights where they are used.
#[derive(Debug, Clone)]
enum Weights {
    /// Packed for the row-invariant CPU kernel, in either format.
    Packed(PackedWeights),
    /// `[K, N]` on a device.
    Device(Tensor),
}

impl Linear {
    /// Joins matrices that read the same input into one layer; each is f32 `[N_i, K]` on the CPU, biases `[N_i]` or
    /// absent from all.
    pub fn new(parts: &[(Tensor, Option<Tensor>)], device: &Device, format: WeightFormat) -> Result<Self> {
        let matrices: Vec<&Tensor> = parts.iter().map(|(w, _)| w).collect();
        let biases: Vec<&Tensor> = parts.iter().filter_map(|(_, b)| b.as_ref()).collect();
        let matrix = Tensor::cat(&matrices, 0)?;
        let bias = if biases.is_empty() { None } else { Some(Tensor::cat(&biases, 0)?.to_device(device)?) };
        if !device.is_cpu() {
            return Ok(Self { weights: Weights::Device(matrix.t()?.contiguous()?.to_device(device)?), bias });
        }
        let (n, k) = matrix.dims2()?;
        let weights = match format {
            WeightFormat::F32 => with_f32(&matrix, |w| PackedWeights::f32(w, n, k))?,
            WeightFormat::Q8_0 => {
                let to_f16 = |v: f32| half::f16::from_f32(v).to_f32();
                with_f32(&matrix, |w| PackedWeights::q8(w, n, k, to_f16))?.map_err(|e| Error::Request {
                    what: "--weights q8_0",
                    expected: "inner sizes that are multiples of 32".to_owned(),
                    got: e.n_inputs.to_string(),
                })?
            }
        };
        Ok(Self { weights: Weights::Packed(weights), bias })
    }

    /// # Shapes
    /// `[T, K] -> [T, N]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match (&self.weights, &self.bias) {
            (Weights::Packed(weights), bias) => packed(x, weights, bias.as_ref()),
            (Weights::Device(weights), None) => Ok(x.matmul(weights)?),
            (Weights::Device(weights), Some(bias)) => Ok(x.matmul(weights)?.broadcast_add(bias)?),
        }
    }

    /// Bytes of the weights.
    pub fn bytes(&self) -> usize {
        match &self.weights {
            Weights::Packed(weights) => weights.bytes(),
            Weights::Device(weights) => weights.elem_count() * weights.dtype().size_in_bytes(),
        }
    }
}

fn packed(x: &Tensor, weights: &PackedWeights, bias: Option<&Tensor>) -> Result<Tensor> {
    let rows = x.dim(0)?;
    let mut out = vec![0.0; rows * weights.n_outputs()];
    with_f32(x, |x| {
        if let Some(bias) = bias {
            with_f32(bias, |bias| matmul(x, weights, Some(bias), &mut out))
        } else {
            matmul(x, weights, None, &mut out);
            Ok(())
        }
    })??;
    from_rows(out, &[rows, weights.n_outputs()])
}
