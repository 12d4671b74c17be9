//! A signal as a score, frozen at birth.

use epikv_model::cache::RowCache;
use epikv_model::taps::ProbePlan;

use super::frozen::{Frozen, LOWEST};
use super::score::{Score, ScoreSpec, Step};
use crate::error::Result;
use crate::signals::Signal;

/// A signal as a score: the values of generated tokens. A prompt token that is not protected, and a token at which the signal
/// is undefined, counts as lowest.
///
/// Rolling windows start empty at the first generated token; its predecessor is the last prompt token.
#[derive(Debug)]
pub struct SignalScore {
    spec: &'static ScoreSpec,
    signal: Box<dyn Signal>,
    layers: Option<[usize; 2]>,
    numbers: Frozen,
}

impl SignalScore {
    /// The score of a signal.
    pub fn new(spec: &'static ScoreSpec, signal: Box<dyn Signal>) -> Self {
        Self { spec, signal, layers: None, numbers: Frozen::default() }
    }

    /// The same of a signal that compares two layers.
    #[must_use]
    pub fn of_layers(self, layers: [usize; 2]) -> Self {
        Self { layers: Some(layers), ..self }
    }
}

impl Score for SignalScore {
    fn spec(&self) -> &'static ScoreSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        self.signal.plan()
    }

    fn observe(&mut self, step: &Step<'_>) -> Result<()> {
        if step.prompt {
            self.numbers.extend(std::iter::repeat_n(LOWEST, step.chunk.len()));
        } else {
            let values = self.signal.push(step.chunk)?;
            self.numbers.extend(values.into_iter().map(|value| value.unwrap_or(LOWEST)));
        }
        Ok(())
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        Ok(self.numbers.of(cache))
    }

    fn frozen(&self) -> Option<&Frozen> {
        Some(&self.numbers)
    }

    fn layers(&self) -> Option<[usize; 2]> {
        self.layers
    }
}
