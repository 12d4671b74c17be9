//! What the cells of a finished run say: accuracy, cost and paired tests.

pub(crate) mod comparison;
pub(crate) mod cost;
pub(crate) mod drift;
pub(crate) mod group;
pub(crate) mod mean;
pub(crate) mod order;
pub(crate) mod summary;
pub(crate) mod variance;
