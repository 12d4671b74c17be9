//! The engine: generations under a policy, eviction from their caches, and certificates.

pub(crate) mod certificate;
pub(crate) mod choice;
pub(crate) mod decode;
pub(crate) mod evictor;
pub(crate) mod generation;
#[cfg(test)]
mod quadratic;
pub(crate) mod recorder;
pub(crate) mod running;
