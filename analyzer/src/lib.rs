//! Which cheap signals predict the labels?
//!
//! The path through the crate: [`record()`] makes one teacher-forced pass over a trace and records signals at all
//! layers. [`Sample`] joins them with the labels of the same tokens. [`study()`] ranks every signal, layer and smoother
//! against the labels, pooled over all tokens and within each trace, with baselines. [`rows`], [`Summary`] and
//! [`figure`] present the results.
//!
//! [`Stored`] does the same for recorded signals, a column at a time, so that they need not fit into memory.
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

mod beside;
pub mod claims;
#[cfg(test)]
mod decode_loop;
mod error;
pub mod figure;
mod record;
#[cfg(test)]
mod shared;
mod study;
mod tables;

pub use beside::agreement::{Agreement, agreements};
pub use beside::at_budget::{AtBudget, decide};
pub use beside::reference::Reference;
pub use beside::replay::{Decisions, Limits, MAX_MEASURED, replay, survivors};
pub use beside::token_class::TokenClass;
pub use beside::{between, between_groups, compare, difficulty, enrichment, groups, predictable, published, selection};
pub use error::{Error, InputError, Result};
pub use record::{Column, RecordOptions, Recording, WindowFrom, record};
pub use study::bands::{Band, BandMean};
pub use study::baseline::{Baseline, EMBEDDING};
pub use study::correlate::{Correlation, Figure, Intervals, correlate, correlate_problems};
pub use study::findings::{DatasetFindings, Finding, Source, TraceShape};
pub use study::join::{Labelled, Mask};
pub use study::lags;
pub use study::pools::Pool;
pub use study::problems::Problems;
pub use study::resamples::{Draws, Resamples};
pub use study::run::{n_columns, study};
pub use study::sample::Sample;
pub use study::settings::Settings;
pub use study::tested::Tested;
pub use study::trace_rho::{MIN_TOKENS, TraceRho, Undefined};
pub use study::windows::Windows;
pub use tables::label_set::LabelSet;
pub use tables::notes::notes;
pub use tables::page::Page;
pub use tables::report::markdown;
pub use tables::rows;
pub use tables::stored::{Asked, LabelledSamples, Stored, join_labels};
pub use tables::summary::{DatasetSummary, Summary, SummaryRow};
