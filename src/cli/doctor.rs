//! Flags of `epikv doctor`.

use std::path::PathBuf;

use clap::Args;

/// `epikv doctor`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    /// Also check that the grader finds each gold answer of these problems equal to itself.
    #[arg(long, value_name = "F")]
    pub(crate) problems: Vec<PathBuf>,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
