//! The operations of a device, and what they take and give.

use std::fmt;

use candle_core::{Device, Tensor};
use epikv_kernels::attention::{AttentionShape, HeadObservation, Observe};

use super::device_name::DeviceName;
use super::host::Numbers;
use super::options::Dtype;
use crate::cache::{Part, Place, RowCache, Slot};
use crate::error::Result;
use crate::linear::{Linear, WeightFormat};
use crate::reads::Reads;
use crate::taps::point::Reduce;

/// What a back-end is.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// Its name on the command line and in provenance.
    pub(crate) name: DeviceName,
    /// Where its tensors lie.
    pub(crate) device: Device,
    /// Numbers of weights, keys and values.
    pub(crate) dtype: Dtype,
    /// Whether several threads may compute at once: sessions side by side, layers loaded together.
    pub(crate) takes_threads: bool,
}

/// Attention at one layer: for the new tokens of all rows, whose keys and values are already in the caches.
#[derive(Debug)]
pub(crate) struct Attention<'a> {
    pub(crate) layer: usize,
    /// New tokens of each row.
    pub(crate) rows: &'a [usize],
    /// What each row reads.
    pub(crate) reads: &'a Reads,
    pub(crate) shape: AttentionShape,
    pub(crate) observe: &'a Observe,
    /// Whether every weight is looked at even if nothing is observed.
    pub(crate) is_explicit: bool,
}

/// What was observed, by row of the batch and KV head.
pub(crate) type Observations = Vec<Vec<HeadObservation>>;

/// The tokens that a pass appends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Appended<'a> {
    /// New tokens of each row.
    pub(crate) lengths: &'a [usize],
    /// The slots reserved for them, by row, kept set and token.
    pub(crate) slots: &'a [Vec<Vec<Slot>>],
}

/// What is kept of the distribution over the vocabulary after one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Distribution {
    /// `-sum_v p_v ln p_v`, in nats.
    pub(crate) entropy: f32,
    /// Largest logit less the second largest.
    pub(crate) margin: f32,
    /// `-ln p` of the token that was asked for.
    pub(crate) surprisal: Option<f32>,
}

/// The operations of a device.
///
/// The residual stream is f32 everywhere. What [`Backend::norm`] and the operations after it give has the back-end's own
/// numbers, up to a product that is added to the residual stream.
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    /// What it is.
    fn facts(&self) -> &Facts;

    /// Takes one tensor of a source, in the numbers in which it was stored, to the device.
    fn place(&self, tensor: &Tensor) -> Result<Tensor>;

    /// Takes f32 numbers to the device as they are.
    fn upload(&self, numbers: Vec<f32>, shape: &[usize]) -> Result<Tensor>;

    /// Joins placed matrices `[N_i, K]` that read the same input, with biases `[N_i]` for all or for none.
    fn linear(&self, parts: &[(Tensor, Option<Tensor>)], format: WeightFormat) -> Result<Linear>;

    /// Rows of a tensor, by their numbers along its first axis.
    fn rows(&self, x: &Tensor, rows: &[u32]) -> Result<Tensor>;

    /// Columns of a matrix `[T, N]`, `[T, n]` without gaps.
    fn columns(&self, x: &Tensor, first: usize, n: usize) -> Result<Tensor>;

    /// Root-mean-square norm over the last axis.
    fn norm(&self, x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor>;

    /// Rotates `[T, H, D]` by the f32 angles of each token, `[T, D/2]`.
    fn rotate(&self, x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor>;

    /// `silu(gate) * up`, from `[T, 2F]` with the gate in the first half of each row, to `[T, F]`.
    fn gated(&self, gate_up: &Tensor) -> Result<Tensor>;

    /// Where the caches of its rows lie.
    fn place_of_caches(&self) -> Place;

    /// Stores new keys or values of a layer, packed `[sum T, H_kv, D]`, in the slots reserved for them.
    fn write(
        &self,
        part: Part,
        layer: usize,
        new: &Tensor,
        caches: &mut [&mut RowCache],
        appended: Appended<'_>,
    ) -> Result<()>;

    /// Attends: queries `[sum T, H, D]` to `[sum T, H D]`. Observations come only where something is observed.
    fn attend(&self, q: &Tensor, caches: &[&mut RowCache], asked: &Attention<'_>) -> Result<(Tensor, Observations)>;

    /// A tensor reduced over its last axis, f32; whole under [`Reduce::Full`]. Not for steps.
    fn reduce(&self, x: &Tensor, how: Reduce) -> Result<Tensor>;

    /// The step to each row of `[n, d]` from the row before it. The first comes after `before` `[1, d]`, or has none.
    fn steps(&self, x: &Tensor, before: Option<&Tensor>, how: Reduce) -> Result<Vec<Option<f32>>>;

    /// What is kept of each row of logits `[n, vocab]`, with the surprisal of the token in `next`, where there is one.
    fn distributions(&self, logits: &Tensor, next: &[Option<u32>]) -> Result<Vec<Distribution>>;

    /// The elements of a tensor, row-major. The only way from the device to the host, and counted.
    fn host<'t>(&self, x: &'t Tensor) -> Result<Numbers<'t>>;

    /// Bytes that [`Backend::host`] has copied so far. None on the CPU, where it lends.
    fn bytes_to_host(&self) -> u64;
}
