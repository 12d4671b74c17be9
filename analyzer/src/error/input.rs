//! Inputs of a study that do not fit each other.

use std::path::PathBuf;

use epikv_words::Hint;

/// Why a study cannot be made of its inputs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// Problem sets to pool that are not several.
    #[error("--pool {typed}: expected two or more different problem sets, joined by +")]
    Pool {
        /// As typed.
        typed: String,
    },
    /// A problem set to pool that no trace belongs to.
    #[error("--pool {pool}: expected problem sets of the traces, {known}, got {name}")]
    OtherSet {
        /// The pool.
        pool: String,
        /// The problem sets of the traces.
        known: String,
        /// The one that is none of them.
        name: String,
    },
    /// Two folders of one name.
    #[error("--against {}: expected folders of different names, got {name} twice", folder.display())]
    SameName {
        /// The second folder.
        folder: PathBuf,
        /// The name.
        name: String,
    },
    /// A level that is no number.
    #[error("{}: problem {problem}: expected a number as level, got {level:?}", path.display())]
    Level {
        /// The file of problems.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// Its level.
        level: String,
    },
    /// A file of problems without a level.
    #[error("{}: expected problems with a level, got none", path.display())]
    NoLevels {
        /// The file of problems.
        path: PathBuf,
    },
    /// Labels that are usable for none of the traces.
    #[error("{}: expected usable labels of at least one of the {n_traces} traces, got none", path.display())]
    NoUsable {
        /// The file of labels.
        path: PathBuf,
        /// Traces that were given.
        n_traces: usize,
    },
    /// Labels and signals that are there together for none of the traces.
    #[error(
        "{}: expected usable labels and signals of at least one of the {n_traces} traces, got none",
        folder.display()
    )]
    NoneTogether {
        /// The folder of labels.
        folder: PathBuf,
        /// Traces that were given.
        n_traces: usize,
    },
    /// A file of labels without a label.
    #[error("{}: expected at least one tested token with a label in a usable trace, got none", path.display())]
    NoLabel {
        /// The file.
        path: PathBuf,
    },
    /// Signals that were recorded with different models.
    #[error("{}: expected signals of the model of {}, got another", other.display(), first.display())]
    OtherModel {
        /// The first file.
        first: PathBuf,
        /// A file of another model.
        other: PathBuf,
    },
    /// A signal that the chosen kernel never shows.
    #[error("signal {signal}: expected --kernel explicit, got fused")]
    HiddenByKernel {
        /// The signal.
        signal: &'static str,
    },
    /// A file of problems cannot be read.
    #[error(transparent)]
    Problems(#[from] epikv_tasks::Error),
}

impl Hint for InputError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::HiddenByKernel { .. } => Some(
                "a fused kernel never writes attention weights down; --kernel explicit reduces them while they exist"
                    .to_owned(),
            ),
            Self::Problems(error) => error.hint(),
            _ => None,
        }
    }
}
