//! What labels say: shares, known values, position, and runs side by side.

pub mod arms;
pub mod folder_summary;
pub mod known;
pub mod missed;
pub mod position;
#[cfg(test)]
pub(crate) mod shared;
pub mod shares;
pub mod summary;
