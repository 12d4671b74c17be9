//! Flags of `epikv labels`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ModelArgs;

/// Commands on existing labels.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum LabelsCommand {
    /// Summarise the labels in several folders, under every mapping of outcomes to flips.
    Summary(LabelsSummaryArgs),
    /// Import labels from JSON lines instead of computing them.
    Import(LabelsImportArgs),
    /// Export labels as JSON lines.
    Export(LabelsExportArgs),
    /// Compare labels with sentence scores.
    Compare(LabelsCompareArgs),
}

/// `epikv labels summary`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LabelsSummaryArgs {
    /// Model and run. Its tokenizer is used to explain missed values.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Folders that `epikv label` wrote, separated by commas.
    #[arg(long, value_name = "DIR,..", value_delimiter = ',', required = true)]
    pub(crate) labels: Vec<PathBuf>,
    /// The labelled traces. With them the summary says how well the labels recover the values that the answers are
    /// known to need.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) traces: Option<PathBuf>,
}

/// `epikv labels import`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LabelsImportArgs {
    /// JSON lines with `token_ids` and `importance`.
    #[arg(long, value_name = "F.jsonl")]
    pub(crate) lines: PathBuf,
    /// The same traces, imported by `epikv trace --import`.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) traces: PathBuf,
    /// Folder of the labels.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace labels that are already there.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Read flags from a TOML file; its keys are flag names. Flags on the command line take precedence.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
}

/// `epikv labels export`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LabelsExportArgs {
    /// Folder that `epikv label` wrote.
    #[arg(long, value_name = "DIR")]
    pub(crate) labels: PathBuf,
    /// The labelled traces.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) traces: PathBuf,
    /// The JSON lines file to write.
    #[arg(long, value_name = "F.jsonl")]
    pub(crate) out: PathBuf,
    /// Replace a file that is already there.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Read flags from a TOML file; its keys are flag names. Flags on the command line take precedence.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
}

/// `epikv labels compare`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LabelsCompareArgs {
    /// Model and run.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Folder that `epikv label` wrote.
    #[arg(long, value_name = "DIR")]
    pub(crate) labels: PathBuf,
    /// The labelled traces.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) traces: PathBuf,
    /// Sentence scores: JSON lines with `id`, `columns` and `chunks`.
    #[arg(long, value_name = "F.jsonl")]
    pub(crate) scores: PathBuf,
}
