//! Which of two is better, how large a difference can be seen, and many claims at once.

pub mod adjust;
pub mod cochran;
pub mod dependent;
pub mod equivalence;
pub mod heterogeneity;
pub mod mcnemar;
pub mod paired;
pub mod power;
pub mod signed;
