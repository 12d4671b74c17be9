//! Decoder with taps, row caches, loading, tokenizer and the generation session.
//!
//! The hot path: [`Session::step`](session::Session::step) packs rows and calls
//! [`Decoder::forward`](decoder::Decoder::forward), which runs each block's linear layers packed
//! ([`linear::Linear`]) and attention row by row over each row's [`cache::RowCache`].
//!
//! Not here: policies, labels, statistics. No code changes a cache from inside a forward pass. The request to record is
//! data ([`taps::ProbePlan`]), and so are the recorded tensors ([`taps::Taps`]).

mod angles;
pub mod autograd;
pub mod backend;
pub mod batch;
pub mod cache;
pub mod chat;
pub mod config;
pub mod decoder;
pub mod error;
pub mod linear;
pub mod load;
mod model;
pub mod plan;
mod reads;
pub mod rope;
pub mod sampler;
pub mod session;
pub mod source;
pub mod taps;
pub mod tokenizer;

pub use candle_core::{DType, Device, Tensor};
pub use error::{Error, Result};
pub use model::{Model, TextModel};

/// Name of the instructions that the kernels use on this machine. It changes the speed, not the bits.
pub fn instruction_set() -> &'static str {
    epikv_kernels::instruction_set().name()
}
