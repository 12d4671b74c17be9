//! Attention from the newest tokens to the older ones, computed at an eviction from the queries of an observation
//! window and the keys held.
//!
//! ```text
//! p_q(r, j) = softmax over the seen j of  q(r) . k_j / sqrt(D)      r = the last w tokens
//! s(j)      = pool_j ( mean over r and the query heads q of the group of p_q(r, j) )
//! ```
//!
//! | score | w | seen by row `r` | group | pool |
//! | --- | --- | --- | --- | --- |
//! | `snapkv` | 32 | all tokens up to `r` | mean | largest of 7 |
//! | `snapkv-decode` | 8 | all before the window | softmax of the largest logit | largest of 7 |
//! | `r-kv` | 8 | all before the window | softmax of the largest logit | largest of 7 |
//! | `vase` | 64 | all before the window | mean | mean of 5 |
//!
//! `r-kv` is `lambda s(j) - (1 - lambda) redundancy(j)` ([`redundancy()`]), `lambda` 0.1. Pools run over neighbours in the
//! order of positions among the tokens before the window; a mean counts what is beyond the ends as zero.
//!
//! The window's own tokens have no score; they rank above all. The window is no longer than the recent tokens that the policy
//! protects, so that its tokens are held, and at least one token long. A kept set that several heads or layers share has the
//! mean of their scores. Queries stay as they were rotated when their tokens came.
//!
//! **Differs from the originals in:** neighbours are those in time (after their first compression `SnapKV`, `R-KV` and `VaSE`
//! pool slots in order of score); `SnapKV`'s published sets are for each query head, before a group shares its keys.
//!
//! Cost: `O(w H n D)` a layer when asked; state: `w` queries a layer. No attention matrix is needed.
//!
//! # References
//! `SnapKV` (arXiv 2404.14469), section 4; R-KV (arXiv 2505.24133), section 3; `VaSE` (arXiv 2606.03928), section 3, as its
//! code has them. The mean over a group before pooling is that of KVCache-Factory.

mod attention;
mod names;
mod queries;
mod redundancy;

use super::row::{Form, ScoreRow};
use super::score::{Need, ScoreSpec};

pub use attention::{Group, Pool, Seen, WindowAttention};
pub use queries::WindowQueries;
pub use redundancy::redundancy;

/// Where all of them differ from the originals.
const DIFFERS: &str =
    "neighbours are those in time, also after a first eviction, and the window is no longer than the recency";

/// What they share.
const SHARED: ScoreSpec = ScoreSpec {
    needs: &[Need::Queries, Need::Keys],
    forms: &["windowN+meanN", "windowN+largestN"],
    weight: true,
    ..ScoreSpec::BLANK
};

pub(crate) static SNAPKV: ScoreSpec = ScoreSpec {
    name: "snapkv",
    doc: "Attention received from the queries of the last 32 tokens, the largest of 7 neighbours",
    source: "SnapKV (arXiv 2404.14469), section 4",
    differs: "query heads of a group share a kept set by their mean, and the window is no longer than the recency",
    ..SHARED
};

pub(crate) static SNAPKV_DECODE: ScoreSpec = ScoreSpec {
    name: "snapkv-decode",
    doc: "Attention received by the tokens before the window from the last 8 tokens, by the largest logit of a group, the \
          largest of 7 neighbours",
    source: "SnapKV (arXiv 2404.14469) while decoding, as in the baseline of R-KV (arXiv 2505.24133)",
    differs: DIFFERS,
    ..SHARED
};

pub(crate) static R_KV: ScoreSpec = ScoreSpec {
    name: "r-kv",
    doc: "snapkv-decode less the redundancy of the key: lambda attention - (1 - lambda) redundancy, lambda 0.1",
    source: "R-KV (arXiv 2505.24133), section 3",
    differs: "neighbours are by position, and the similarity matrix is left unchanged for a key that no other key \
              resembles",
    forms: &["windowN+meanN+lambdaX", "windowN+largestN+lambdaX"],
    weight: false,
    ..SHARED
};

pub(crate) static VASE: ScoreSpec = ScoreSpec {
    name: "vase",
    doc: "Attention received by the tokens before the window from the last 64 tokens, mean of 5 neighbours",
    source: "VaSE (arXiv 2606.03928), section 3, before its reserve and its draw",
    differs: DIFFERS,
    ..SHARED
};

/// The rows of the table.
pub(crate) const SNAPKV_ROW: ScoreRow =
    ScoreRow::with_argument(&SNAPKV, |argument| form(&SNAPKV, WindowAttention::SNAPKV, argument));
pub(crate) const SNAPKV_DECODE_ROW: ScoreRow =
    ScoreRow::with_argument(&SNAPKV_DECODE, |argument| form(&SNAPKV_DECODE, WindowAttention::SNAPKV_DECODE, argument));
pub(crate) const R_KV_ROW: ScoreRow =
    ScoreRow::with_argument(&R_KV, |argument| form(&R_KV, WindowAttention::R_KV, argument));
pub(crate) const VASE_ROW: ScoreRow =
    ScoreRow::with_argument(&VASE, |argument| form(&VASE, WindowAttention::VASE, argument));

/// A published score with the parts that the argument replaces.
fn form(spec: &'static ScoreSpec, published: WindowAttention, argument: &str) -> Option<Form> {
    let how = names::replaced(published, argument)?;
    let start = move |n_layers, recency| WindowQueries::new(spec, how, n_layers, recency);
    Some(Form::new(names::argument(published, how), move |setup| Ok(Box::new(start(setup.n_layers, setup.recency)))))
}
