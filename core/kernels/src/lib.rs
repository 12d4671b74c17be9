//! CPU kernels whose results do not depend on batch, chunking or threads.
//!
//! Every output is defined as one fixed sequence of fused multiply-adds:
//!
//! - a matrix product sums over `k = 0, 1, .. K-1` in one chain per output ([`gemm`]);
//! - a query-key product sums eight interleaved chains (`d mod 8`) and then a fixed tree ([`lanes`]);
//! - a weighted sum of values runs over the visible keys in order of their positions ([`attention`]).
//!
//! A fused multiply-add is rounded once, correctly. So blocking, vector width, thread count, the number of rows and
//! their order change *which instruction* computes a step, never its result. The bits of a row are the same alone or
//! packed with others, in one chunk or in many, on AVX2 or without SIMD. The portable code is the definition; the tests
//! compare every fast path with it bit by bit.
//!
//! Not here: tensors, devices, models. Slices in, slices out.

pub mod attention;
mod disjoint;
pub mod gemm;
mod isa;
pub mod lanes;
pub mod norm;
pub mod pointwise;
pub mod rope;

pub use isa::{Isa, instruction_set};
