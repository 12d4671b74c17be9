//! Errors of studies.

mod input;

use std::path::PathBuf;

use epikv_words::Hint;

pub use self::input::InputError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of recording and joining. An undefined coefficient is no error: it is `None`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A trace that contradicts itself or the model.
    #[error(transparent)]
    Trace(#[from] epikv_schemas::TraceError),
    /// A label of a token that the recorded trace does not have.
    #[error("trace {trace_id}: label at position {pos}: expected {expected}, got {got}")]
    OtherLabels {
        /// The recorded trace.
        trace_id: String,
        /// Position of the label, as stored.
        pos: i32,
        /// What the recorded trace has there.
        expected: String,
        /// What the label says.
        got: String,
    },
    /// A file of signals that were recorded of other tokens.
    #[error("{}: trace {trace_id}, position {pos}: expected {expected}, got {got}", path.display())]
    OtherTokens {
        /// The file.
        path: PathBuf,
        /// The trace.
        trace_id: String,
        /// Position in the trace.
        pos: usize,
        /// What the trace has there.
        expected: String,
        /// What the file has.
        got: String,
    },
    /// A trace that was recorded in two of the files.
    #[error("{}: trace {trace_id}: expected it in one file of signals, got it in two", path.display())]
    RecordedTwice {
        /// The trace.
        trace_id: String,
        /// The second file.
        path: PathBuf,
    },
    /// Files of one table that were not recorded alike.
    #[error("{}: expected the signals and layers of {}, got others", path.display(), first.display())]
    OtherColumns {
        /// The file.
        path: PathBuf,
        /// The file before it.
        first: PathBuf,
    },
    /// A folder without recorded signals.
    #[error("{}: expected files of signals, got none", folder.display())]
    NothingRecorded {
        /// The folder.
        folder: PathBuf,
    },
    /// A signal that was asked for and that no file has.
    #[error("signal {signal}: expected one that the files of --recorded hold ({known}), got none of that name")]
    NotRecordedSignal {
        /// As asked for.
        signal: String,
        /// What is there.
        known: String,
    },
    /// A reference table that cannot be understood.
    #[error("{}: line {line}, column {column}: expected {expected}, got {got}", path.display())]
    BadReference {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column.
        column: String,
        /// What would fit.
        expected: String,
        /// What stands there.
        got: String,
    },
    /// A column to compare that cannot be understood.
    #[error("column {given:?}: expected SIGNAL, @layer=L and @smooth=S, got {part:?}")]
    BadColumn {
        /// As typed.
        given: String,
        /// What is not known.
        part: String,
    },
    /// A column to compare that no trace has.
    #[error("column {given}: expected a recorded signal, with @layer=L where it has a value a layer, got none")]
    NotRecordedColumn {
        /// As typed.
        given: String,
    },
    /// A folder without results of a run.
    #[error(
        "{}: expected correlations.parquet, label_traces.parquet or eviction_runs.parquet, got none of them",
        folder.display()
    )]
    NoResults {
        /// The folder.
        folder: PathBuf,
    },
    /// A figure cannot be turned into pixels.
    #[error(transparent)]
    Drawing(#[from] epikv_figures::Error),
    /// Inputs that do not fit each other.
    #[error(transparent)]
    Input(Box<InputError>),
    /// A file cannot be read.
    #[error(transparent)]
    Schemas(Box<epikv_schemas::Error>),
    /// A signal cannot be built or fed.
    #[error(transparent)]
    Signals(#[from] epikv_signals::Error),
    /// The model failed.
    #[error("the model failed")]
    Model(#[from] epikv_model::Error),
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::Input(Box::new(error))
    }
}

impl From<epikv_schemas::Error> for Error {
    fn from(error: epikv_schemas::Error) -> Self {
        Self::Schemas(Box::new(error)) // alone it is as large as all others together
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Trace(error) => error.hint(),
            Self::OtherTokens { .. } => Some("signals and traces must come from the same traces file".to_owned()),
            Self::RecordedTwice { .. } => Some("folders of signals recorded in parts hold different traces".to_owned()),
            Self::OtherColumns { .. } => Some("record all parts with the same model and signals".to_owned()),
            Self::NothingRecorded { .. } => Some("`epikv correlate --model` writes signals_*.parquet".to_owned()),
            Self::NotRecordedSignal { .. } => Some(
                "`epikv correlate --model M --signals A,B` records signals, those of attention weights with --kernel explicit"
                    .to_owned(),
            ),
            Self::OtherLabels { .. } => Some("labels and traces must come from the same traces file".to_owned()),
            Self::BadColumn { .. } | Self::NotRecordedColumn { .. } => {
                Some("--compare hs_l2@layer=10@smooth=mean64,epikv; `epikv signals` lists the signals".to_owned())
            }
            Self::BadReference { .. } => {
                let columns = "a reference is a CSV table with the columns signal and spearman_rho, a row a signal";
                let names = "the figure uses rows named hs_l2_diff_lN or hs_l2_lN (or hs_l2 with a column layer)";
                Some(format!("{columns}; {names}, with _rolling64 or _ema09 at the end if they are smoothed"))
            }
            Self::Input(error) => error.hint(),
            Self::Schemas(error) => error.hint(),
            Self::Signals(error) => error.hint(),
            Self::Model(error) => error.hint(),
            _ => None,
        }
    }
}
