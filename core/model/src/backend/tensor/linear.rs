//! Linear layers as matrices of the tensor library.

use candle_core::{DType, Tensor};

use super::ops::product;
use crate::error::Result;
use crate::linear::Layer;

/// A matrix `[N, K]` on the device, as it is stored, so that a tied embedding is held once.
#[derive(Debug)]
pub(super) struct Matrix {
    weights: Tensor,
    /// `[N]`, f32.
    bias: Option<Tensor>,
}

impl Matrix {
    pub(super) fn new(weights: Tensor, bias: Option<&Tensor>) -> Result<Self> {
        Ok(Self { weights, bias: bias.map(|bias| bias.to_dtype(DType::F32)).transpose()? })
    }
}

impl Layer for Matrix {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.forward_f32(x)?.to_dtype(self.weights.dtype())?)
    }

    fn forward_f32(&self, x: &Tensor) -> Result<Tensor> {
        let y = product(x, &self.weights.t()?)?;
        match &self.bias {
            Some(bias) => Ok(y.broadcast_add(bias)?),
            None => Ok(y),
        }
    }

    fn bytes(&self) -> usize {
        self.weights.elem_count() * self.weights.dtype().size_in_bytes()
    }
}
