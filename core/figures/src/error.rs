//! Errors of drawing a figure.

/// A drawing that cannot become pixels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The renderer refused it.
    #[error("drawing the figure: expected {expected}, got {got}")]
    Drawing {
        /// What the renderer expects.
        expected: &'static str,
        /// What it says.
        got: String,
    },
}

/// The result of drawing.
pub type Result<T> = std::result::Result<T, Error>;
