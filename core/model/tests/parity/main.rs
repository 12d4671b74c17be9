//! The decoder compared with Transformers' numbers, and mutants that these comparisons must reject.
//!
//! The files, the scripts that made them and the versions are described in `tests/golden/model/README.md`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backend;
mod gguf;
mod golden;
mod hf;
mod invariance;
mod kept;
mod mutants;
mod oracle;
mod session;
