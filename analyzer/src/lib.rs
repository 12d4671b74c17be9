//! Which cheap signals predict the labels?
//!
//! The way through the crate: [`record()`] makes one teacher-forced pass over a trace and records signals at all layers,
//! [`join()`] pairs a recorded column with the labels of the same tokens, and [`correlate()`] ranks one against the other,
//! pooled over all tokens and within each trace.
//!
//! Not here: how a signal is computed (`epikv-signals`), how a coefficient is computed (`epikv-stats`), how labels come
//! about, and files: rows come in and figures go out.
//!
//! ```
//! use epikv_analyzer::{Labelled, correlate};
//! use epikv_stats::Confidence;
//!
//! // A signal that is always higher at important tokens, in five traces.
//! let values = [(Some(0.1), false), (Some(0.3), false), (Some(0.7), true), (Some(0.9), true)];
//! let traces = vec![Labelled::new(values); 5];
//! let found = correlate(&traces, Confidence::P95);
//! assert_eq!((found.n_tokens, found.n_eff), (20, 5));
//! assert_eq!(found.pooled.auc, Some(1.0));
//! ```

mod correlate;
mod error;
mod join;
mod record;
#[cfg(test)]
mod shared;
mod trace_rho;

pub use correlate::{Correlation, Figure, correlate};
pub use error::{Error, Result};
pub use join::{Labelled, join};
pub use record::{Column, RecordOptions, Recording, WindowFrom, record};
pub use trace_rho::{MIN_TOKENS, TraceRho, Undefined};
