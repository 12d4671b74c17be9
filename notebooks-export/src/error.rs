//! What can go wrong between records and a page.

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
    /// A span that the trace does not have.
    #[error("trace {trace_id}: {what}: expected a span within 0..{n_tokens}, got {start}..{end}")]
    Span {
        /// The trace.
        trace_id: String,
        /// What has the span.
        what: &'static str,
        /// Tokens of the trace.
        n_tokens: usize,
        /// Its start, as stored.
        start: i64,
        /// Its end, as stored.
        end: i64,
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
