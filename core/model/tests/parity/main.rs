//! The decoder compared with slow formulas and with itself, and mutants that Transformers' numbers must reject.
//!
//! `examples/run_parity` compares the decoder with those numbers.
//!
//! The files, the scripts that made them and the versions are described in `tests/golden/model/README.md`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backend;
mod gguf;
mod golden;
mod invariance;
mod kept;
mod mutants;
mod oracle;
mod session;
