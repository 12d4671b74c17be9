//! How often an answer is right.

pub mod pass_at_k;
pub mod proportion;
pub mod tango;
