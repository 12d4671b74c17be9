//! Uncertainty of estimates: confidence levels, Fisher intervals, pooled traces, clustered standard errors.

pub mod clustered;
pub(crate) mod confidence;
pub mod fisher;
pub mod pool;
