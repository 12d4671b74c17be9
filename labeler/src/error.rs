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
    /// Lines of labels that are of none of the traces.
    #[error("{}: no line has the tokens of a trace in {}", lines.display(), traces.display())]
    NoCommonTrace {
        /// The file of lines.
        lines: std::path::PathBuf,
        /// The traces file.
        traces: std::path::PathBuf,
    },
    /// A folder has no labels of any of the traces.
    #[error("{}: expected labels of a trace in {}, got none", labels.display(), traces.display())]
    NoLabels {
        /// The folder.
        labels: std::path::PathBuf,
        /// The traces file.
        traces: std::path::PathBuf,
    },
    /// A file without sentence scores.
    #[error("{}: expected lines of sentence scores, got none", path.display())]
    NoScores {
        /// The file.
        path: std::path::PathBuf,
    },
    /// A file could not be read.
    #[error(transparent)]
    Files(Box<epikv_schemas::Error>),
    /// The model failed.
    #[error("the model failed")]
    Model(#[from] epikv_model::Error),
}

impl From<epikv_schemas::Error> for Error {
    fn from(error: epikv_schemas::Error) -> Self {
        Self::Files(Box::new(error))
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoFillerToken { .. } => Some("choose another --filler, for example token:ID".to_owned()),
            Self::Trace(error) => error.hint(),
            Self::Interrupted { .. } => Some("run the same command again to go on".to_owned()),
            Self::Files(error) => error.hint(),
            Self::Model(error) => error.hint(),
            _ => None,
        }
    }
}
