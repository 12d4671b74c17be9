//! Prints an error: once, with its causes and hints.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use epikv_words::Hint;

use crate::output::NothingToDo;

/// What this crate itself refuses, with what to try.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Refused {
    /// Place, expected, got.
    what: String,
    hint: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Refused {
    pub(crate) fn new(what: String, hint: impl Into<String>) -> Self {
        Self { what, hint: hint.into(), source: None }
    }

    /// An error of a library that gives no advice, with ours.
    pub(crate) fn advised(error: impl Error + Send + Sync + 'static, hint: impl Into<String>) -> Self {
        Self { what: error.to_string(), hint: hint.into(), source: Some(error.into()) }
    }
}

impl Hint for Refused {
    fn hint(&self) -> Option<String> {
        Some(self.hint.clone())
    }
}

/// Prints an error and gives the exit code: 0 if all was done already, 1 if the run was told to stop, 2 if it could not be.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    if let Some(done) = error.downcast_ref::<NothingToDo>() {
        let _ = writeln!(crate::terminal::err(), "{done}");
        return ExitCode::SUCCESS;
    }
    // A closed stderr is no reason to panic.
    let _ = crate::terminal::err().write_all(text(error).as_bytes());
    let interrupted = error
        .downcast_ref::<epikv_labeler::Error>()
        .is_some_and(|error| matches!(error, epikv_labeler::Error::Interrupted { .. }));
    ExitCode::from(if interrupted { 1 } else { 2 })
}

/// `error:` line, causes indented below, `hint:` lines.
pub(crate) fn text(error: &anyhow::Error) -> String {
    let mut lines = vec![format!("error: {error}")];
    let mut said = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Transparent errors repeat their source.
        if cause != said {
            lines.push(format!("  caused by: {cause}"));
        }
        said = cause;
    }
    let hint = error.chain().find_map(|cause| ADVISERS.iter().find_map(|hint| hint(cause)));
    lines.extend(hint.map(|h| format!("hint: {h}")));
    lines.push(String::new());
    lines.join("\n")
}

/// The errors that give advice.
const ADVISERS: &[fn(&(dyn Error + 'static)) -> Option<String>] = &[
    hint_of::<epikv_schemas::Error>,
    hint_of::<epikv_model::Error>,
    hint_of::<epikv_tasks::Error>,
    hint_of::<epikv_signals::Error>,
    hint_of::<epikv_labeler::Error>,
    hint_of::<epikv_analyzer::Error>,
    hint_of::<epikv_eviction::Error>,
    hint_of::<crate::config_file::UnknownKey>,
    hint_of::<crate::config_file::BadValue>,
    hint_of::<crate::output::Exists>,
    hint_of::<Refused>,
];

fn hint_of<E: Hint + 'static>(error: &(dyn Error + 'static)) -> Option<String> {
    error.downcast_ref::<E>()?.hint()
}
