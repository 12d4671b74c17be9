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
//! | question | modules |
//! | --- | --- |
//! | how are values ordered | [`rank`], [`topk`], [`kendall`], [`quantile`] |
//! | does a signal follow a label | [`spearman`](mod@spearman), [`rank_sum`], [`partial`], [`stratified`], [`pooled`], [`pooled_pairs`] |
//! | how sure are we | [`fisher`], [`pool`], [`bootstrap`], [`resample`], [`surrogate`], [`circular_shift`], [`permutation`], [`power`] |
//! | which of two is better | [`dependent`], [`agreement`], [`paired`], [`signed`], [`mcnemar`], [`tango`](mod@tango), [`equivalence`], [`cochran`], [`heterogeneity`] |
//! | how often is an answer right | [`proportion`], [`pass_at_k`], [`clustered`] |
//! | many claims at once | [`adjust`], [`permutation`] |
//! | signals over positions | [`rolling`], [`ema`], [`trend`] |
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

pub mod adjust;
pub mod agreement;
pub mod bootstrap;
pub mod circular_shift;
pub mod clustered;
pub mod cochran;
mod confidence;
pub mod dependent;
mod discrete;
pub mod ema;
pub mod equivalence;
mod error;
pub mod fisher;
pub mod heterogeneity;
mod incomplete_beta;
pub mod kendall;
pub mod mcnemar;
pub mod moments;
mod normal;
pub mod paired;
pub mod partial;
pub mod pass_at_k;
pub mod permutation;
pub mod pool;
pub mod pooled;
pub mod pooled_pairs;
pub mod power;
pub mod proportion;
pub mod quantile;
mod radix;
pub mod rank;
pub mod rank_sum;
pub mod resample;
pub mod rolling;
pub mod signed;
pub mod spearman;
pub mod stratified;
pub mod surrogate;
pub mod tails;
pub mod tango;
pub mod topk;
pub mod trend;

pub use confidence::Confidence;
pub use ema::{Ema, EmaInit};
pub use error::{Error, Result};
pub use fisher::{FisherInterval, FisherMethod, fisher_interval};
pub use pooled::PooledSort;
pub use pooled_pairs::PooledPairs;
pub use radix::{ordered_key, sort_keys};
pub use rank::{Midranks, SignalOrder, midranks};
pub use rank_sum::{BinaryRanks, RankScratch};
pub use rolling::{Rolling, RollingPoint, RollingSpec};
pub use spearman::spearman;
pub use topk::{Ties, top_k};
