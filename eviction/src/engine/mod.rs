//! The engine: generations under a policy, eviction from their caches, and certificates.

pub(crate) mod certificate;
mod choice;
pub(crate) mod decode;
pub(crate) mod evictor;
pub(crate) mod generation;
#[cfg(test)]
mod parity;
#[cfg(test)]
mod parity_kvpress;
#[cfg(test)]
mod parity_vase;
#[cfg(test)]
mod quadratic;
pub(crate) mod recorder;
pub(crate) mod running;
