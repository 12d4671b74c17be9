//! Flags of `epikv export`.

use std::path::PathBuf;

use clap::Args;

use super::count;

/// `epikv export`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArgs {
    /// Traces, as `epikv trace` writes them.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) traces: PathBuf,
    /// Folder that `epikv label` wrote.
    #[arg(long, value_name = "DIR")]
    pub(crate) labels: PathBuf,
    /// The page to write.
    #[arg(long, value_name = "F.html")]
    pub(crate) out: PathBuf,
    /// Only this trace. May be repeated. Without this flag, all traces with windows.
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Vec<String>,
    /// Only the first N traces of the file.
    #[arg(long, value_name = "N", value_parser = count::items)]
    pub(crate) limit: Option<usize>,
    /// Replace a page that is already there.
    #[arg(long)]
    pub(crate) fresh: bool,
}
