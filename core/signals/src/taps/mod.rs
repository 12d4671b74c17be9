//! Input of scores and signals: the recorded tensors of a row, and the keys and values held.

mod chunk;
pub(crate) mod held;

pub use chunk::Chunk;
