//! Counterfactual occlusion labels: which tokens of a trace does the answer depend on?
//!
//! A window of reasoning tokens is overwritten by filler and the answer is regenerated greedily. The window is
//! important if the answer differs from that of the control, the same regeneration with nothing overwritten. The path
//! through the crate: [`label::label`] runs controls and then windows ([`window::windows`], [`filler`]), judges each
//! regenerated answer ([`outcome`]) and folds windows into tokens ([`token_labels`]).
//!
//! Not here: result files (the binary writes the rows), signals, eviction.

pub mod arms;
pub mod config;
pub mod error;
pub mod estimate;
pub mod exchange;
pub mod filler;
pub mod folder;
pub mod folder_summary;
pub mod intervention;
mod job;
pub mod journal;
pub mod known;
pub mod label;
mod labels;
pub mod lines;
pub mod missed;
pub mod noise;
pub mod outcome;
mod pairs;
mod plan;
pub mod position;
mod prefixes;
mod refine;
mod regenerate;
mod regenerations;
mod rows;
pub mod sentences;
#[cfg(test)]
mod shared;
pub mod shares;
pub mod spans;
pub mod summary;
pub mod token_labels;
pub mod window;

pub use arms::{ArmComparison, compare_arms};
pub use config::{AnswerKind, Config, Mapping, Protocol, Settings, Stop};
pub use error::{Error, Result};
pub use estimate::{Estimate, Rates};
pub use folder_summary::FolderSummary;
pub use intervention::Intervention;
pub use journal::Journal;
pub use known::{Known, KnownValues};
pub use label::label;
pub use labels::{Failure, Labels, Progress};
pub use missed::{Hiding, Missed, missed};
pub use noise::NoiseFloor;
pub use position::Position;
pub use shares::{Share, shares};
pub use spans::By;
pub use summary::Summary;
