//! Weights in the order in which the product reads them.

use super::PANEL;

/// Inputs that share a scale in `Q8_0`.
pub const Q8_BLOCK: usize = 32;

/// Weights that cannot be stored as `Q8_0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Q8Error {
    /// Inputs of the matrix; they must be a multiple of [`Q8_BLOCK`].
    pub n_inputs: usize,
}

impl std::fmt::Display for Q8Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} inputs are not a multiple of {Q8_BLOCK}, as Q8_0 needs", self.n_inputs)
    }
}

impl std::error::Error for Q8Error {}

/// A weight matrix of `N` outputs and `K` inputs, in panels of sixteen outputs: `[N/16, K, 16]`, zero-padded.
#[derive(Debug, Clone)]
pub struct PackedWeights {
    n_outputs: usize,
    n_inputs: usize,
    pub(super) store: Store,
}

/// Element types.
#[derive(Debug, Clone)]
pub(super) enum Store {
    /// `[N/16, K, 16]`.
    F32(Vec<f32>),
    /// Eight-bit integers `[N/16, K, 16]` and one f32 scale for 32 inputs of an output `[N/16, K/32, 16]`.
    Q8 { values: Vec<i8>, scales: Vec<f32> },
}

impl PackedWeights {
    /// Packs a row-major `[n_outputs, n_inputs]` matrix.
    ///
    /// # Panics
    /// If a size is zero or the length does not agree.
    pub fn f32(matrix: &[f32], n_outputs: usize, n_inputs: usize) -> Self {
        check(matrix.len(), n_outputs, n_inputs);
        let mut packed = vec![0.0; n_outputs.div_ceil(PANEL) * PANEL * n_inputs];
        for (n, row) in matrix.chunks_exact(n_inputs).enumerate() {
            for (k, &value) in row.iter().enumerate() {
                packed[offset(n, k, n_inputs)] = value;
            }
        }
        Self { n_outputs, n_inputs, store: Store::F32(packed) }
    }

    /// Rounds a row-major matrix to `Q8_0` and packs it: for 32 inputs of an output, `scale = max|w| / 127` (rounded
    /// to f16 as the file format stores it) and `q = round(w / max * 127)`, halves away from zero.
    ///
    /// A product with it equals, bit by bit, the f32 product with the weights `q * scale`.
    ///
    /// # Errors
    /// If the number of inputs is not a multiple of 32.
    ///
    /// # Panics
    /// If a size is zero or the length does not agree.
    pub fn q8(matrix: &[f32], n_outputs: usize, n_inputs: usize, to_f16: fn(f32) -> f32) -> Result<Self, Q8Error> {
        check(matrix.len(), n_outputs, n_inputs);
        if !n_inputs.is_multiple_of(Q8_BLOCK) {
            return Err(Q8Error { n_inputs });
        }
        let panels = n_outputs.div_ceil(PANEL);
        let mut values = vec![0; panels * PANEL * n_inputs];
        let mut scales = vec![0.0; panels * PANEL * (n_inputs / Q8_BLOCK)];
        for (n, row) in matrix.chunks_exact(n_inputs).enumerate() {
            for (b, block) in row.chunks_exact(Q8_BLOCK).enumerate() {
                let max = block.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
                let inverse = if max > 0.0 { 127.0 / max } else { 0.0 };
                scales[offset(n, b, n_inputs / Q8_BLOCK)] = to_f16(max / 127.0);
                for (i, &w) in block.iter().enumerate() {
                    values[offset(n, b * Q8_BLOCK + i, n_inputs)] = (w * inverse).round() as i8;
                }
            }
        }
        Ok(Self { n_outputs, n_inputs, store: Store::Q8 { values, scales } })
    }

    /// Outputs `N`.
    pub fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// Inputs `K`.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Bytes of the packed form, padding included.
    pub fn bytes(&self) -> usize {
        match &self.store {
            Store::F32(v) => size_of_val(v.as_slice()),
            Store::Q8 { values, scales } => values.len() + size_of_val(scales.as_slice()),
        }
    }

    /// One weight, as the product uses it.
    ///
    /// # Panics
    /// If out of range.
    pub fn get(&self, output: usize, input: usize) -> f32 {
        let at = offset(output, input, self.n_inputs);
        match &self.store {
            Store::F32(v) => v[at],
            Store::Q8 { values, scales } => {
                f32::from(values[at]) * scales[offset(output, input / Q8_BLOCK, self.n_inputs / Q8_BLOCK)]
            }
        }
    }
}

/// Index of (output, input) in panels of `[inputs, 16]`.
fn offset(output: usize, input: usize, inputs: usize) -> usize {
    (output / PANEL * inputs + input) * PANEL + output % PANEL
}

fn check(len: usize, n_outputs: usize, n_inputs: usize) {
    assert!(n_outputs > 0 && n_inputs > 0, "an empty weight matrix");
    assert_eq!(len, n_outputs * n_inputs, "weights are not {n_outputs} x {n_inputs}");
}
