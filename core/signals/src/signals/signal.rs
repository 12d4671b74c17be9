//! The trait of signals, and what the tables say of one.

use epikv_model::taps::ProbePlan;

use crate::error::Result;
use crate::taps::Chunk;

/// What the tables say of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalSpec {
    /// Name on the command line and in files.
    pub name: &'static str,
    /// What it measures, in one sentence with its formula.
    pub doc: &'static str,
    /// Unit of the values; `1` where they have none.
    pub unit: &'static str,
    /// Where the definition comes from.
    pub source: &'static str,
}

/// One number a token, computed from taps as the tokens come.
///
/// **Contract.** The value of a token depends on that token and those before it (causal), and is the same to the last bit
/// for any cutting into chunks. An undefined value is `None`, never `NaN` and never 0.
pub trait Signal: std::fmt::Debug + Send {
    /// The row of the tables.
    fn spec(&self) -> &'static SignalSpec;

    /// What the forward pass must record. A plan without attention taps is what the paper calls FA2-compatible.
    fn plan(&self) -> ProbePlan;

    /// The values of the next tokens, one for each, `[T]`.
    ///
    /// # Errors
    /// If the chunk lacks what [`Signal::plan`] asks for.
    fn push(&mut self, chunk: &Chunk<'_>) -> Result<Vec<Option<f32>>>;

    /// Forgets the series so far: rolling windows start empty at the next token.
    ///
    /// Called where decoding begins. The predecessor of the next token lives in its cache and is not forgotten.
    fn reset(&mut self);
}
