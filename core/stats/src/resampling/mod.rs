//! Draws keyed by (seed, replicate): bootstrap intervals, and surrogates of the labels for tests.

pub mod bootstrap;
pub mod circular_shift;
pub mod permutation;
pub mod resample;
pub mod surrogate;
