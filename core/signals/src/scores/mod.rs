//! Scores that rank held tokens for eviction, and their table.

mod attention_sum;
mod epikv;
mod frozen;
mod key_score;
mod kv_key;
mod labels;
mod lag_held;
mod layer;
mod ordered;
mod random;
mod recency;
mod reference;
mod row;
mod score;
mod signal_score;
mod stamps;
mod table;
mod value_size;
mod window;

pub use attention_sum::{AttentionRows, AttentionSum};
pub use epikv::Bands;
pub use frozen::Frozen;
pub use key_score::KeyScore;
pub use lag_held::{Lag, LagScore};
pub use layer::OneLayer;
pub use reference::{ScoreRef, score_forms};
pub use row::{BuildScore, Form, ScoreRow};
pub use score::{Labels, Need, Score, ScoreSpec, Setup, Step};
pub use signal_score::SignalScore;
pub use stamps::Stamps;
pub use table::SCORES;
pub use value_size::{ValueSize, value_ranges, value_sizes};
pub use window::{Group, Pool, Seen, WindowAttention, WindowQueries, redundancy};
