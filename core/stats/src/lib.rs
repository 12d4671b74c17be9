//! Ranks, correlation, intervals, tests and rolling windows on plain slices.
//!
//! Pure arithmetic: no files, no logging, no tensors, no global state. Every function documents its formula, the
//! shapes it takes, its source, and when its result is undefined. **Undefined is `None`, never `NaN` and never 0.**
//! The same inputs give the same bits for any number of threads: rank statistics stay in integers until one last
//! division, windows are summed in position order, and random draws are keyed by (seed, replicate).
//!
//! It is *not* a general statistics library: what is here is what labels, signals and evictions need.
//!
//! The hot path: [`BinaryRanks::from_f32`] (Spearman of a signal against a binary label as a rank sum),
//! [`PooledSort`] (one sort, then any number of trace resamples) and [`Rolling`] (causal z-score).
//!
//! One folder a question; every module is also named at the top of the crate:
//!
//! | folder | question | modules |
//! | --- | --- | --- |
//! | `ranks` | how are values ordered | [`rank`], [`topk`], [`quantile`] |
//! | `correlation` | does a signal follow a label | [`spearman`](mod@spearman), [`rank_sum`], [`partial`], [`stratified`], [`pooled`], [`pooled_pairs`] |
//! | | do two rankings agree | [`kendall`], [`agreement`] |
//! | `intervals` | how sure is an estimate | [`fisher`], [`pool`], [`clustered`] |
//! | `resampling` | the same, by drawing again | [`resample`], [`bootstrap`], [`surrogate`], [`circular_shift`], [`permutation`] |
//! | `tests` | which of two is better | [`dependent`], [`paired`], [`signed`], [`mcnemar`], [`equivalence`], [`cochran`], [`heterogeneity`] |
//! | | how much data does it take; many claims at once | [`power`], [`adjust`] |
//! | `proportions` | how often is an answer right | [`proportion`], [`pass_at_k`], [`tango`](mod@tango) |
//! | `series` | signals over positions | [`rolling`], [`ema`], [`trend`] |
//! | `distributions` | the tails that the rest needs | [`tails`] |
//!
//! # Examples
//!
//! ```
//! use epikv_stats::{BinaryRanks, RankScratch};
//!
//! let signal = [0.1_f32, 0.4, 0.35, 0.8];
//! let important = [false, false, true, true];
//! let ranks = BinaryRanks::from_f32(&signal, &important, &mut RankScratch::default()).expect("no NaN");
//! assert_eq!(ranks.auc(), Some(0.75));
//! assert!((ranks.rho().expect("both classes occur") - 0.447_213_595_499_958).abs() < 1e-15);
//! ```

mod correlation;
mod distributions;
mod error;
mod intervals;
pub mod moments;
mod proportions;
mod ranks;
mod resampling;
mod series;
mod tests;

pub use correlation::pooled::PooledSort;
pub use correlation::pooled_pairs::PooledPairs;
pub use correlation::rank_sum::{BinaryRanks, RankScratch};
pub use correlation::spearman::spearman;
pub use correlation::{agreement, kendall, partial, pooled, pooled_pairs, rank_sum, spearman, stratified};
pub use distributions::tails;
pub use error::{Error, Result};
pub use intervals::confidence::Confidence;
pub use intervals::fisher::{FisherInterval, FisherMethod, fisher_interval};
pub use intervals::{clustered, fisher, pool};
pub use proportions::{pass_at_k, proportion, tango};
pub use ranks::radix::{ordered_key, sort_keys};
pub use ranks::rank::{Midranks, SignalOrder, midranks};
pub use ranks::topk::{Ties, top_k};
pub use ranks::{quantile, rank, topk};
pub use resampling::{bootstrap, circular_shift, permutation, resample, surrogate};
pub use series::ema::{Ema, EmaInit};
pub use series::rolling::{Rolling, RollingPoint, RollingSpec};
pub use series::{ema, rolling, trend};
pub use tests::{adjust, cochran, dependent, equivalence, heterogeneity, mcnemar, paired, power, signed};
