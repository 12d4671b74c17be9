//! How values are ordered: sort keys, midranks, the largest few, quantiles.

pub mod quantile;
pub(crate) mod radix;
pub mod rank;
pub mod topk;
