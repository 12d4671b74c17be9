//! Errors of a choice of layers.

use std::path::PathBuf;

use epikv_words::Hint;

/// Why a choice of layers cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayersError {
    /// The file has no choice.
    #[error(
        "--layers-from {}: expected a picked layer or pair of layers, got none; correlate with --pick",
        path.display()
    )]
    NotPicked {
        /// The file.
        path: PathBuf,
    },
    /// The file has several choices, of several problem sets.
    #[error(
        "--layers-from {}: expected one choice, got {} on {} and {} on {}; --layers-dataset names one",
        path.display(), first.0, first.1, other.0, other.1
    )]
    Several {
        /// The file.
        path: PathBuf,
        /// A choice and its problem set.
        first: (String, String),
        /// Another one.
        other: (String, String),
    },
    /// The file does not say on which problems the choice was made.
    #[error("--layers-from {}: expected the problems that the layers were chosen on, got none", path.display())]
    NoProblems {
        /// The file.
        path: PathBuf,
    },
    /// The layers were chosen on problems that they would be judged on.
    #[error(
        "--layers-from {}: expected layers chosen on other problems, got {n} problems that are in both ({names})",
        path.display()
    )]
    Overlap {
        /// The file.
        path: PathBuf,
        /// Problems that are in both.
        n: usize,
        /// The first of them.
        names: String,
    },
    /// One layer for a policy that takes two.
    #[error("--layers-from {}: expected a pair of layers for {policy}, got one", path.display())]
    NoPair {
        /// The file.
        path: PathBuf,
        /// The policy.
        policy: String,
    },
    /// No policy takes layers.
    #[error("--layers-from {}: expected a policy that takes layers (epikv, epikv-raw), got none", path.display())]
    NoUse {
        /// The file.
        path: PathBuf,
    },
}

impl Hint for LayersError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::Overlap { .. }).then(|| {
            "layers look better on the problems that they were chosen on; label and correlate \
             one part of the problems with --pick, and evict on the other"
                .to_owned()
        })
    }
}
