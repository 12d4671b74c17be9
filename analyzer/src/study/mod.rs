//! The study: every signal, layer and smoothing against the labels of the same tokens.

pub(crate) mod bands;
pub(crate) mod baseline;
pub(crate) mod column;
pub(crate) mod correlate;
pub(crate) mod findings;
pub(crate) mod join;
pub mod lags;
#[cfg(test)]
mod planted;
pub(crate) mod pools;
pub(crate) mod problems;
pub(crate) mod resamples;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod settings;
pub(crate) mod tested;
pub(crate) mod trace_rho;
pub(crate) mod windows;
