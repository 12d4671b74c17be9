//! Signals and scores: formulas on taps and caches, streaming and causal.
//!
//! A [`Signal`] says what the decoder must record ([`Signal::plan`]), takes what was recorded chunk by chunk
//! ([`Signal::push`]) and gives one number a token. The number depends on the tokens up to that one and not on where the
//! chunks were cut, so the same code serves a study of whole traces and a decision at each decode step. All signals
//! stand in one table, [`SIGNALS`], and the values of any of them can be smoothed ([`Smoother`]); help, documentation
//! and the contract test are made from it.
//!
//! Not here: which tokens are kept, what the numbers are compared with, files.
//!
//! ```
//! use epikv_model::Device;
//! use epikv_model::batch::{LogitsOf, RowInput};
//! use epikv_model::cache::{Capacity, Scope};
//! use epikv_model::decoder::Decoder;
//! use epikv_model::linear::WeightFormat;
//! use epikv_model::load::open;
//! use epikv_signals::{Chunk, find};
//!
//! let (config, weights, _) = open(&"random:3,layers=2".parse()?)?;
//! let decoder = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32)?;
//! let mut cache = decoder.cache(Scope::Global, Capacity::Growing)?;
//!
//! let mut signal = find("hs_l2")?.at_layer(1, 2)?;
//! let input = RowInput::next(&cache, vec![5, 6, 7], LogitsOf::None);
//! let output = decoder.forward(&[input], &mut [&mut cache], &signal.plan())?;
//! let values = signal.push(&Chunk::new(&output.taps, 0..3))?;
//! assert_eq!(values.len(), 3);
//! assert!(values[0].is_none() && values[1].is_some(), "the first token has no predecessor");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attention_sum;
mod attn_received;
mod attn_row;
mod band_score;
mod chunk;
mod cross_head_var;
mod embed_l2;
mod epikv;
mod error;
mod held;
mod hs_cos;
mod hs_l2;
mod hs_norm;
mod key_diff;
mod key_score;
mod kv_key;
mod kv_norm;
mod kv_range;
mod kv_var;
mod lag;
mod lag_held;
mod lag_next;
mod late;
mod layer_mean;
mod layers;
mod numbers;
#[cfg(test)]
mod parity;
mod per_layer;
mod redundancy;
mod registry;
mod signal;
mod smoother;
mod stamps;
mod token;
mod value_range;
mod window_attention;

pub use attention_sum::{AttentionRows, AttentionSum};
pub use band_score::BandScore;
pub use chunk::Chunk;
pub use epikv::{EPIKV_LAYERS, Epikv};
pub use error::{Error, Result};
pub use key_score::KeyScore;
pub use kv_key::KvKey;
pub use lag_held::{Lag, LagScore};
pub use late::LateSignal;
pub use layers::{REFERENCE_LAYERS, map_layer};
pub use per_layer::At;
pub use registry::{Build, LayerSignal, SIGNALS, SignalRow, find};
pub use signal::{Signal, SignalSpec};
pub use smoother::{DEFAULT_WINDOW, Smoother, Smoothing};
pub use stamps::Stamps;
pub use value_range::value_ranges;
pub use window_attention::{Group, Pool, Seen, WindowAttention, WindowQueries};
