//! Errors of making a page from records.

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Records that do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A window of another trace.
    #[error("window {window}: expected trace {expected}, got {got}")]
    OtherTrace {
        /// Number of the window.
        window: i32,
        /// The trace on the page.
        expected: String,
        /// The trace of the window.
        got: String,
    },
    /// A trace that contradicts itself.
    #[error(transparent)]
    Trace(#[from] epikv_schemas::TraceError),
    /// A window that the trace does not have.
    #[error("trace {trace_id}: window {window}: expected a span within 0..{n_tokens}, got {start}..{end}")]
    Window {
        /// The trace.
        trace_id: String,
        /// Number of the window.
        window: i32,
        /// Tokens of the trace.
        n_tokens: usize,
        /// Its start, as stored.
        start: i32,
        /// Its end, as stored.
        end: i32,
    },
    /// An outcome that is not one of the known words.
    #[error("trace {trace_id}: window {window}: expected one of {}, got {got:?}", known.join(", "))]
    UnknownOutcome {
        /// The trace.
        trace_id: String,
        /// Number of the window.
        window: i32,
        /// The known words.
        known: Vec<&'static str>,
        /// As stored.
        got: String,
    },
}
