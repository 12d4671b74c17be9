//! What a forward pass records: the request and the recorded tensors. There are no callbacks.

mod next_token;
pub(crate) mod point;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use candle_core::Tensor;
use epikv_kernels::attention::Observe;

pub use epikv_kernels::attention::HeadObservation;

pub use self::next_token::LogitTap;
pub(crate) use self::next_token::logit_taps;
pub use self::point::{Reduce, TapPoint};
use self::step::steps;
use crate::backend::operations::Backend;
use crate::cache::RowCache;
use crate::error::Result;

/// A reduction of attention weights, applied while they exist. The matrix is never kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttentionTap {
    /// Weight that each key receives, summed over the new tokens: `[H, keys]` a row.
    ColumnSum(usize),
    /// The same from queries at most so many keys later: what was known of a token at that age.
    YoungSum(usize, usize),
    /// Entropy of each new token's row in nats: `[T, H]` a row.
    RowEntropy(usize),
    /// How many keys back each new token looks on average: `[T, H]` a row.
    RowDistance(usize),
    /// The rows of the last `w` new tokens: `[H, w, keys]` a row.
    Rows(usize, usize),
}

/// What to record. An empty plan costs nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbePlan {
    points: BTreeSet<(TapPoint, Reduce)>,
    attention: BTreeSet<AttentionTap>,
    logits: BTreeSet<LogitTap>,
}

impl ProbePlan {
    /// Adds a tap point.
    #[must_use]
    pub fn tap(mut self, point: TapPoint, reduce: Reduce) -> Self {
        self.points.insert((point, reduce));
        self
    }

    /// Adds a reduction of attention weights.
    #[must_use]
    pub fn attention(mut self, tap: AttentionTap) -> Self {
        self.attention.insert(tap);
        self
    }

    /// Adds a reduction of the logits of every token, which costs the head's product at each of them.
    #[must_use]
    pub fn logits(mut self, tap: LogitTap) -> Self {
        self.logits.insert(tap);
        self
    }

    /// Everything that either plan asks for.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            points: self.points.union(&other.points).copied().collect(),
            attention: self.attention.union(&other.attention).copied().collect(),
            logits: self.logits.union(&other.logits).copied().collect(),
        }
    }

    /// Whether attention weights must exist. A plan without them is what the paper calls FA2-compatible.
    pub fn needs_attention(&self) -> bool {
        !self.attention.is_empty()
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.attention.is_empty() && self.logits.is_empty()
    }

    /// Whether the head must run for every token.
    pub fn needs_logits(&self) -> bool {
        !self.logits.is_empty()
    }

    pub(crate) fn logit_taps(&self) -> Vec<LogitTap> {
        self.logits.iter().copied().collect()
    }

    pub(crate) fn points(&self) -> impl Iterator<Item = (TapPoint, Reduce)> + '_ {
        self.points.iter().copied()
    }

    /// What the attention of a layer must observe.
    pub(crate) fn observe(&self, layer: usize) -> Observe {
        let mut observe = Observe::default();
        for tap in &self.attention {
            match *tap {
                AttentionTap::ColumnSum(l) if l == layer => observe.column_sum = true,
                AttentionTap::YoungSum(l, age) if l == layer => observe.ages.push(age),
                AttentionTap::RowEntropy(l) if l == layer => observe.entropy = true,
                AttentionTap::RowDistance(l) if l == layer => observe.distance = true,
                AttentionTap::Rows(l, w) if l == layer => observe.last_rows = observe.last_rows.max(w),
                _ => {}
            }
        }
        observe
    }
}

/// A tensor on the device that it was made on.
#[derive(Debug)]
struct Recorded {
    tensor: Tensor,
    backend: Arc<dyn Backend>,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Taps {
    tensors: BTreeMap<(TapPoint, Reduce), Recorded>,
    steps: BTreeMap<(TapPoint, Reduce), Vec<Option<f32>>>,
    attention: BTreeMap<usize, Vec<Vec<HeadObservation>>>,
    logits: BTreeMap<LogitTap, Vec<Option<f32>>>,
}

impl Taps {
    /// A recorded tensor, f32 on the device; `Full` has the shape of its point, the others lack the last axis.
    pub fn get(&self, point: TapPoint, reduce: Reduce) -> Option<&Tensor> {
        self.tensors.get(&(point, reduce)).map(|recorded| &recorded.tensor)
    }

    /// Lends the values of a recorded tensor, row-major; `None` where it was not recorded. From another device they are
    /// copied, and counted.
    ///
    /// # Errors
    /// If the tensor library fails.
    pub fn values<R>(&self, point: TapPoint, reduce: Reduce, f: impl FnOnce(&[f32]) -> R) -> Result<Option<R>> {
        let lend = |recorded: &Recorded| Ok(f(&recorded.backend.host(&recorded.tensor)?));
        self.tensors.get(&(point, reduce)).map(lend).transpose()
    }

    /// Step norms `[T]`, null at the first token that a cache ever takes.
    pub fn step_norms(&self, point: TapPoint) -> Option<&[Option<f32>]> {
        self.steps(point, Reduce::StepNorm)
    }

    /// Steps from each token's predecessor `[T]` under [`Reduce::StepNorm`] or [`Reduce::StepCosine`], null at the first
    /// token that a cache ever takes.
    pub fn steps(&self, point: TapPoint, reduce: Reduce) -> Option<&[Option<f32>]> {
        self.steps.get(&(point, reduce)).map(Vec::as_slice)
    }

    /// A reduction of the logits, `[T]`; null where undefined.
    pub fn logits(&self, tap: LogitTap) -> Option<&[Option<f32>]> {
        self.logits.get(&tap).map(Vec::as_slice)
    }

    /// Takes the reductions of the logits that [`logit_taps`] found.
    pub(crate) fn record_logits(&mut self, found: BTreeMap<LogitTap, Vec<Option<f32>>>) {
        self.logits = found;
    }

    /// What was observed of the attention of a layer: by row, then by KV head. Keys are in order of positions.
    pub fn attention(&self, layer: usize) -> Option<&[Vec<HeadObservation>]> {
        self.attention.get(&layer).map(Vec::as_slice)
    }

    pub(crate) fn observed(&mut self, layer: usize, rows: Vec<Vec<HeadObservation>>) {
        self.attention.insert(layer, rows);
    }

    /// Records a tensor at a point, in each form that the plan asks for.
    pub(crate) fn record(
        &mut self,
        backend: &Arc<dyn Backend>,
        plan: &ProbePlan,
        point: TapPoint,
        x: &Tensor,
        rows: &[usize],
        caches: &mut [&mut RowCache],
    ) -> Result<()> {
        let asked = plan.points().filter(|(p, _)| *p == point).map(|(_, reduce)| reduce);
        let (of_steps, others): (Vec<Reduce>, Vec<Reduce>) =
            asked.partition(|reduce| matches!(reduce, Reduce::StepNorm | Reduce::StepCosine));
        for reduce in others {
            let recorded = Recorded { tensor: backend.reduce(x, reduce)?, backend: Arc::clone(backend) };
            self.tensors.insert((point, reduce), recorded);
        }
        if !of_steps.is_empty() {
            let found = steps(&**backend, point, &of_steps, x, rows, caches)?;
            self.steps.extend(of_steps.into_iter().map(|reduce| (point, reduce)).zip(found));
        }
        Ok(())
    }
}
