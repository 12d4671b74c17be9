//! The normal, Student's t, beta, binomial and hypergeometric distributions, to the last digits of an `f64`.

pub(crate) mod discrete;
pub(crate) mod incomplete_beta;
pub(crate) mod normal;
pub mod tails;
