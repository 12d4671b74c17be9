//! Windows, what is done to them, what became of the answer, and the labels of tokens that follow.

pub(crate) mod compared;
pub mod filler;
pub mod intervention;
pub mod outcome;
pub(crate) mod published;
pub mod spans;
pub mod token_labels;
pub mod window;
