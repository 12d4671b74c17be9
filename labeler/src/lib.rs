//! Counterfactual occlusion labels: which tokens of a trace does the answer depend on?
//!
//! A window of reasoning tokens is overwritten by filler and the answer is regenerated greedily. The window is
//! important if the answer differs from that of the control, the same regeneration with nothing overwritten. The path
//! through the crate: [`label::label`] runs controls and then windows ([`window::windows`], [`filler`]), judges each
//! regenerated answer ([`outcome`]) and folds windows into tokens ([`token_labels`]).
//!
//! Not here: result files (the binary writes the rows), signals, eviction.

mod analysis;
pub mod error;
mod files;
mod run;
mod windows;

pub use analysis::arms::{ArmComparison, compare_arms};
pub use analysis::folder_summary::FolderSummary;
pub use analysis::known::{Known, KnownValues};
pub use analysis::missed::{Hiding, Missed, missed};
pub use analysis::position::Position;
pub use analysis::shares::{Share, shares};
pub use analysis::summary::Summary;
pub use analysis::{arms, folder_summary, known, missed, position, shares, summary};
pub use error::{Error, Result};
pub use files::{exchange, folder, lines, sentences};
pub use run::config::{Config, Protocol, Settings, Stop};
pub use run::estimate::{Estimate, Rates};
pub use run::journal::Journal;
pub use run::label::label;
pub use run::labels::{Failure, Labels, Progress};
pub use run::noise::NoiseFloor;
pub use run::{config, estimate, journal, label, noise};
pub use windows::compared::{AnswerKind, Mapping};
pub use windows::intervention::Intervention;
pub use windows::spans::By;
pub use windows::{filler, intervention, outcome, spans, token_labels, window};
