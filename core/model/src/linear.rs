//! Linear layers, as a back-end holds them.

use std::fmt;
use std::sync::Arc;

use candle_core::Tensor;

use crate::error::Result;

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

/// `y = x W^T + b` with the weights of one or several matrices that read the same input.
pub(crate) trait Layer: fmt::Debug + Send + Sync {
    /// In the numbers of the back-end.
    ///
    /// # Shapes
    /// `[T, K] -> [T, N]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;

    /// The same as f32: for the residual stream and for logits.
    fn forward_f32(&self, x: &Tensor) -> Result<Tensor>;

    /// Bytes of the weights.
    fn bytes(&self) -> usize;
}

/// A linear layer on some back-end.
#[derive(Debug, Clone)]
pub struct Linear(Arc<dyn Layer>);

impl Linear {
    /// A layer of a back-end.
    pub(crate) fn of(layer: impl Layer + 'static) -> Self {
        Self(Arc::new(layer))
    }

    /// In the numbers of the back-end.
    ///
    /// # Shapes
    /// `[T, K] -> [T, N]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.forward(x)
    }

    /// The same as f32: for the residual stream and for logits.
    pub(crate) fn forward_f32(&self, x: &Tensor) -> Result<Tensor> {
        self.0.forward_f32(x)
    }

    /// Bytes of the weights.
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// Matrices one below the other, and their biases one after the other.
pub(crate) fn joined(parts: &[(Tensor, Option<Tensor>)]) -> Result<(Tensor, Option<Tensor>)> {
    let matrices: Vec<&Tensor> = parts.iter().map(|(matrix, _)| matrix).collect();
    let biases: Vec<&Tensor> = parts.iter().filter_map(|(_, bias)| bias.as_ref()).collect();
    let bias = if biases.is_empty() { None } else { Some(Tensor::cat(&biases, 0)?) };
    Ok((Tensor::cat(&matrices, 0)?, bias))
}
