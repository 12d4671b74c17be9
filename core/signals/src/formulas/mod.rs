//! Formulas that several scores and signals share.

pub(crate) mod direction;
pub(crate) mod numbers;
pub(crate) mod spread;
