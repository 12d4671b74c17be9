//! Flags of `epikv doctor`.

use std::path::PathBuf;

use clap::Args;

use super::DeviceArgs;

/// `epikv doctor`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    /// Also check that the grader finds each gold answer of these problems equal to itself.
    #[arg(long, value_name = "F")]
    pub(crate) problems: Vec<PathBuf>,
    /// Where the built-in model is opened.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
