//! How an error is shown: once, with its causes and what to try.

use std::io::Write;
use std::process::ExitCode;

/// What this crate itself refuses, with what to try.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Refused {
    /// Place, expected, got.
    what: String,
    hint: String,
}

impl Refused {
    pub(crate) fn new(what: String, hint: impl Into<String>) -> Self {
        Self { what, hint: hint.into() }
    }
}

/// Prints an error and gives the exit code: 1 if the run was told to stop, 2 if it could not be.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    // A closed stderr is no reason to panic.
    let _ = std::io::stderr().write_all(text(error).as_bytes());
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
    let hint = error.chain().find_map(hint);
    lines.extend(hint.map(|h| format!("hint: {h}")));
    lines.push(String::new());
    lines.join("\n")
}

/// The hint of an error of ours.
fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    None.or_else(|| error.downcast_ref::<epikv_model::Error>().and_then(epikv_model::Error::hint))
        .or_else(|| {
            error
                .downcast_ref::<crate::correlate::HiddenByKernel>()
                .map(|_| crate::correlate::HiddenByKernel::HINT.to_owned())
        })
        .or_else(|| {
            error.downcast_ref::<crate::label::OtherTokenizer>().map(|_| crate::label::OtherTokenizer::HINT.to_owned())
        })
        .or_else(|| error.downcast_ref::<crate::evict::Overlap>().map(|_| crate::evict::Overlap::HINT.to_owned()))
        .or_else(|| error.downcast_ref::<epikv_schemas::Error>().and_then(epikv_schemas::Error::hint))
        .or_else(|| error.downcast_ref::<epikv_tasks::Error>().and_then(epikv_tasks::Error::hint))
        .or_else(|| error.downcast_ref::<epikv_eviction::Error>().and_then(epikv_eviction::Error::hint))
        .or_else(|| error.downcast_ref::<epikv_labeler::Error>().and_then(epikv_labeler::Error::hint))
        .or_else(|| error.downcast_ref::<epikv_analyzer::Error>().and_then(epikv_analyzer::Error::hint))
        .or_else(|| error.downcast_ref::<epikv_signals::Error>().and_then(epikv_signals::Error::hint))
        .or_else(|| error.downcast_ref::<crate::grade::BadPair>().map(|_| crate::grade::BadPair::hint()))
        .or_else(|| error.downcast_ref::<crate::config_file::UnknownKey>().map(crate::config_file::UnknownKey::hint))
        .or_else(|| error.downcast_ref::<crate::config_file::BadValue>().map(crate::config_file::BadValue::hint))
        .or_else(|| error.downcast_ref::<crate::output::Exists>().map(crate::output::Exists::hint))
        .or_else(|| error.downcast_ref::<Refused>().map(|refused| refused.hint.clone()))
}
