//! Which cheap signals predict the labels?
//!
//! The way through the crate: [`record()`] makes one teacher-forced pass over a trace and records signals at all layers,
//! [`Sample`] joins them with the labels of the same tokens, [`study()`] ranks every signal, layer and smoothing against the
//! labels, pooled over all tokens and within each trace, with baselines beside, and [`rows`], [`Summary`] and [`figure`] say
//! what came out.
//!
//! [`Stored`] does the same to signals that were recorded before, a column at a time, where all of them would not fit into memory.
//!
//! Not here: how a signal is computed or smoothed (`epikv-signals`), how a coefficient is computed (`epikv-stats`), how
//! labels come about, and writing files: rows, text and pixels go out.
//!
//! ```
//! use epikv_analyzer::{Intervals, Labelled, Resamples, correlate};
//! use epikv_stats::{Confidence, FisherMethod};
//!
//! // A signal that is always higher at important tokens, in five traces.
//! let values = [(Some(0.1), false), (Some(0.3), false), (Some(0.7), true), (Some(0.9), true)];
//! let traces = vec![Labelled::new(values); 5];
//! let resamples = Resamples::new(0, 2000);
//! let (confidence, fisher) = (Confidence::P95, FisherMethod::Plain);
//! let intervals = Intervals { confidence, fisher, resamples: &resamples, n_surrogates: 99 };
//! let found = correlate(&traces, &intervals);
//! assert_eq!((found.n_tokens, found.n_eff), (20, 5));
//! assert_eq!(found.pooled.auc, Some(1.0));
//! ```

mod agreement;
mod bands;
mod baseline;
pub mod between_groups;
pub mod compare;
mod correlate;
mod decision;
mod decisions;
#[cfg(test)]
mod decode_loop;
pub mod difficulty;
pub mod enrichment;
mod error;
pub mod figure;
mod findings;
pub mod groups;
mod join;
pub mod lags;
mod notes;
#[cfg(test)]
mod planted;
mod pools;
pub mod predictable;
pub mod published;
mod record;
mod reference;
mod report;
mod resamples;
pub mod rows;
pub mod selection;
#[cfg(test)]
mod shared;
mod stored;
mod study;
mod summary;
mod tested;
mod token_class;
mod trace_rho;
mod windows;

pub use agreement::{Agreement, agreements};
pub use bands::{Band, BandMean};
pub use baseline::{Baseline, EMBEDDING};
pub use correlate::{Correlation, Figure, Intervals, correlate};
pub use decision::{Decisions, Limits, MAX_MEASURED, replay, survivors};
pub use decisions::{AtBudget, decide};
pub use error::{Error, Result};
pub use findings::{DatasetFindings, Finding, Source, TraceShape};
pub use join::{Labelled, Mask};
pub use notes::notes;
pub use pools::Pool;
pub use record::{Column, RecordOptions, Recording, WindowFrom, record};
pub use reference::Reference;
pub use report::markdown;
pub use resamples::{Draws, Resamples};
pub use stored::{Asked, Stored, join_labels};
pub use study::{Sample, Settings, n_columns, study};
pub use summary::{DatasetSummary, Summary, SummaryRow};
pub use tested::Tested;
pub use token_class::TokenClass;
pub use trace_rho::{MIN_TOKENS, TraceRho, Undefined};
pub use windows::Windows;
