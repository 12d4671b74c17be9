//! What can go wrong while labelling.

use epikv_words::Hint;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of labelling. Those of one trace are collected and do not stop the others.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting outside its range.
    #[error("{setting}: expected {expected}, got {got}")]
    Setting {
        /// The setting, as on the command line.
        setting: &'static str,
        /// What is accepted.
        expected: String,
        /// What was given.
        got: String,
    },
    /// The model lacks a token that the filler needs.
    #[error("filler {filler}: the model defines no {token} token")]
    NoFillerToken {
        /// The filler.
        filler: &'static str,
        /// The token.
        token: &'static str,
    },
    /// A trace contradicts itself, its labels or the model.
    #[error(transparent)]
    Trace(#[from] epikv_schemas::TraceError),
    /// The run was told to stop, and did.
    #[error("stopped after {n_done} of {n} {phase}")]
    Interrupted {
        /// What was being regenerated.
        phase: &'static str,
        /// Regenerations that are done.
        n_done: usize,
        /// Regenerations of the phase.
        n: usize,
    },
    /// The journal of a run cannot be used.
    #[error("cannot use the journal {}", path.display())]
    Journal {
        /// The file.
        path: std::path::PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The model failed.
    #[error("the model failed")]
    Model(#[from] epikv_model::Error),
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoFillerToken { .. } => Some("choose another --filler, for example token:ID".to_owned()),
            Self::Trace(error) => error.hint(),
            Self::Interrupted { .. } => Some("run the same command again to go on".to_owned()),
            Self::Model(error) => error.hint(),
            _ => None,
        }
    }
}
