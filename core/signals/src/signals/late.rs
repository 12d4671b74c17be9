//! Signals whose value of a token is known only after later tokens.

use epikv_model::taps::ProbePlan;

use super::signal::SignalSpec;
use crate::error::Result;
use crate::taps::Chunk;

/// One number a token, known when the sequence has ended.
///
/// Such a number says what a policy *would have liked to know*. A policy that scores live tokens again sees a part of it: a
/// fair comparison takes what was known at some age, or at the moment of each decision.
pub trait LateSignal: std::fmt::Debug + Send {
    /// The row of the tables.
    fn spec(&self) -> &'static SignalSpec;

    /// What the forward pass must record.
    fn plan(&self) -> ProbePlan;

    /// Takes the next tokens of the sequence.
    ///
    /// # Errors
    /// If the chunk lacks what [`LateSignal::plan`] asks for.
    fn push(&mut self, chunk: &Chunk<'_>) -> Result<()>;

    /// The values of all tokens so far, `[n]`; nothing is remembered.
    fn finish(&mut self) -> Vec<Option<f32>>;
}
