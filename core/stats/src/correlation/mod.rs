//! Whether a signal follows a label, or another ranking.

pub mod agreement;
pub mod kendall;
pub mod partial;
pub mod pooled;
pub mod pooled_pairs;
pub mod rank_sum;
pub mod spearman;
pub mod stratified;
