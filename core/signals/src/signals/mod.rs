//! Signals: one number a token, and their table.

mod attn_received;
mod attn_row;
mod band_score;
mod cross_head_var;
mod embed_l2;
mod epikv;
mod hs_cos;
mod hs_l2;
mod hs_norm;
mod key_diff;
mod kv_key;
mod kv_norm;
mod kv_range;
mod kv_var;
mod lag;
mod lag_next;
mod late;
mod layer_mean;
mod of_score;
mod per_layer;
mod registry;
mod row;
mod signal;
mod smoother;
mod token;

pub use band_score::BandScore;
pub use epikv::{EPIKV_LAYERS, Epikv};
pub use kv_key::KvKey;
pub use late::LateSignal;
pub use of_score::ScoreSignal;
pub use per_layer::At;
pub use registry::{LayerSignal, SIGNALS, find};
pub use row::{Build, SignalRow};
pub use signal::{Signal, SignalSpec};
pub use smoother::{DEFAULT_WINDOW, Smoother, Smoothing};
