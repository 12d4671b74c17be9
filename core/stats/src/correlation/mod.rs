//! Rank correlation of a signal with a label, or with another ranking.

pub mod agreement;
pub mod kendall;
pub mod partial;
pub mod pooled;
pub mod pooled_pairs;
pub mod rank_sum;
pub mod spearman;
pub mod stratified;
