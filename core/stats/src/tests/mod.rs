//! Tests: comparisons of two policies or signals, power, and corrections for many tests.

pub mod adjust;
pub mod cochran;
pub mod dependent;
pub mod equivalence;
pub mod heterogeneity;
pub mod mcnemar;
pub mod paired;
pub mod power;
pub mod signed;
