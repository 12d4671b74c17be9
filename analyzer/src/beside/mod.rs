//! What is asked beside the study: whether two signals differ, which tokens matter, how problem sets differ, and what a
//! signal is worth at the moments of eviction.

pub(crate) mod agreement;
pub(crate) mod at_budget;
pub mod between_groups;
pub mod claims;
pub mod compare;
pub mod difficulty;
pub mod enrichment;
pub mod groups;
pub mod predictable;
pub mod published;
pub(crate) mod reference;
pub(crate) mod replay;
pub mod selection;
pub(crate) mod token_class;
