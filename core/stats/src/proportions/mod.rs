//! Shares of right answers: intervals, paired differences, pass@k.

pub mod pass_at_k;
pub mod proportion;
pub mod tango;
