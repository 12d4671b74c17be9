//! What scores and signals read: what a pass recorded of a row, and the keys and values that are held.

mod chunk;
pub(crate) mod held;

pub use chunk::Chunk;
