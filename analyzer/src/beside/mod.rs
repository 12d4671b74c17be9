//! Side studies: comparisons of two signals, kinds of tokens, comparisons of problem sets, and the value of a signal at
//! decision time.

pub(crate) mod agreement;
pub(crate) mod at_budget;
pub mod between;
pub mod between_groups;
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
