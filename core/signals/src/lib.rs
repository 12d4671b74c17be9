//! Signals and scores: formulas on taps and caches, streaming and causal.
//!
//! A [`Signal`] says what the decoder must record ([`Signal::plan`]), takes what was recorded chunk by chunk
//! ([`Signal::push`]) and gives one number a token. The number depends on the tokens up to that one and not on where the
//! chunks were cut, so the same code serves a study of whole traces and a decision at each decode step. All signals
//! stand in one table, [`SIGNALS`], and the values of any of them can be smoothed ([`Smoother`]); help, documentation
//! and the contract test are made from it.
//!
//! A [`Score`] says what a held token is worth to a policy: one number a token in each kept set, given once or made again at
//! each eviction. All scores stand in [`SCORES`], a [`ScoreRef`] names one with its argument, and a program's own
//! [`ScoreRow`] is as good as one of the table. [`find`] turns any of them into a signal of whole traces.
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

mod error;
mod formulas;
mod layers;
mod page;
mod scores;
mod signals;
mod taps;
mod words;

pub use error::{Error, Result};
pub use layers::{REFERENCE_LAYERS, map_layer};
pub use page::page;
pub use scores::{
    AttentionRows, AttentionSum, Bands, BuildScore, Form, Frozen, Group, KeyScore, Labels, Lag, LagScore, Need,
    OneLayer, Pool, SCORES, Score, ScoreRef, ScoreRow, ScoreSpec, Seen, Setup, SignalScore, Stamps, Step, ValueSize,
    WindowAttention, WindowQueries, redundancy, score_forms, value_ranges, value_sizes,
};
pub use signals::{
    At, BandScore, Build, DEFAULT_WINDOW, EPIKV_LAYERS, Epikv, KvKey, LateSignal, LayerSignal, SIGNALS, ScoreSignal,
    Signal, SignalRow, SignalSpec, Smoother, Smoothing, find,
};
pub use taps::Chunk;
