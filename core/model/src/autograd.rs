//! What a crate needs of the tensor library to define operations with gradients of their own, such as the trainer's.
//!
//! The decoder itself computes no gradients.

pub use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, Error, InplaceOp1, InplaceOp2, Layout, Result, Shape, Storage, Var, bail,
};
