//! Errors of declarations.

use std::path::PathBuf;

/// Why a declaration does not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeclaredError {
    /// The file of the declaration holds something else.
    #[error("{}: expected what a run declared", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// A margin that comes after results that it could have been chosen by.
    #[error(
        "--margin {margin}: expected a margin that was declared before the run, got one after {n_finished} policies have \
         finished generations (declared: {}); --fresh starts over, another --out keeps what is there",
        declared.map_or("none".to_owned(), |margin| margin.to_string())
    )]
    LateMargin {
        /// As asked for.
        margin: f64,
        /// Policies with finished generations.
        n_finished: usize,
        /// The margin that was declared before.
        declared: Option<f64>,
    },
    /// A declaration that is not made again could not be removed.
    #[error("removing {}", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}
