//! A signal behind a smoother: a decorator, so that any signal can be smoothed in any way.

use epikv_model::taps::ProbePlan;

use crate::chunk::Chunk;
use crate::error::Result;
use crate::signal::{Signal, SignalSpec};
use crate::smoother::{Smoother, Smoothing};

/// A smoothed signal. It keeps the contract of [`Signal`], since smoothers are causal and take values one by one.
#[derive(Debug)]
pub struct Smoothed {
    inner: Box<dyn Signal>,
    smoothing: Smoothing,
}

impl Smoothed {
    /// `inner` smoothed over a window of `window` tokens.
    ///
    /// # Errors
    /// If the window is empty.
    pub fn new(inner: Box<dyn Signal>, smoother: Smoother, window: usize) -> Result<Self> {
        Ok(Self { inner, smoothing: smoother.start(window)? })
    }
}

impl Signal for Smoothed {
    /// The row of the signal inside.
    fn spec(&self) -> &'static SignalSpec {
        self.inner.spec()
    }

    fn plan(&self) -> ProbePlan {
        self.inner.plan()
    }

    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>> {
        let values = self.inner.push(chunk)?;
        Ok(values.into_iter().map(|value| self.smoothing.push(value)).collect())
    }

    fn reset(&mut self) {
        self.inner.reset();
        self.smoothing.reset();
    }
}
