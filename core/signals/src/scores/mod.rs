//! Scores: what a held token is worth to a policy.

mod attention_sum;
mod key_score;
mod lag_held;
#[cfg(test)]
mod parity;
mod redundancy;
mod stamps;
mod value_range;
mod window_attention;

pub use attention_sum::{AttentionRows, AttentionSum};
pub use key_score::KeyScore;
pub use lag_held::{Lag, LagScore};
pub use stamps::Stamps;
pub use value_range::value_ranges;
pub use window_attention::{Group, Pool, Seen, WindowAttention, WindowQueries};
