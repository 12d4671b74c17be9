//! The command line: commands and flags.

#[cfg(test)]
mod contract;
mod correlate;
mod count;
mod device;
mod doctor;
mod evict;
mod export;
mod grade;
mod label;
mod labels;
mod plan;
mod word;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use epikv_eviction::Budget;
use epikv_model::decoder::AttentionKernel;
use epikv_model::linear::WeightFormat;
use epikv_model::load::ModelRef;
use epikv_tasks::prompt::PromptStyle;
use epikv_tasks::span::Tags;
use epikv_tasks::tiny::Level;
use serde_json::Value;

use crate::batch::Batch;

pub(crate) use self::correlate::CorrelateArgs;
pub(crate) use self::device::DeviceArgs;
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::evict::{EvictArgs, PolicyArgs, ReplayArgs};
pub(crate) use self::export::ExportArgs;
pub(crate) use self::grade::GradeArgs;
pub(crate) use self::label::{LabelArgs, Preset};
pub(crate) use self::labels::{
    LabelsCommand, LabelsCompareArgs, LabelsExportArgs, LabelsImportArgs, LabelsSummaryArgs,
};
pub(crate) use self::plan::PlanArgs;
pub(crate) use self::word::word;

/// Which tokens of a reasoning trace does the answer depend on, and which KV-cache eviction policy keeps them?
#[derive(Debug, Parser)]
#[command(name = "epikv", version, args_override_self = true, propagate_version = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// More log lines on stderr; twice for even more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// A budget, with or without space around it.
fn budget(text: &str) -> Result<Budget, epikv_eviction::Error> {
    text.trim().parse()
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate problems whose answers, and the values that they need, are known.
    Problems(ProblemsArgs),
    /// Make reasoning traces of problems with a model, or import them.
    Trace(TraceArgs),
    /// Label the tokens of traces by occlusion: does the answer change when a window is hidden?
    Label(LabelArgs),
    /// Correlate signals of the model with labels: which signal predicts important tokens, at which layer?
    Correlate(CorrelateArgs),
    /// Decode problems under eviction policies: which keeps the answer right at which budget, time and memory?
    Evict(Box<EvictArgs>),
    /// Replay recorded traces: feed their tokens under eviction policies and decode only the answers.
    Replay(Box<ReplayArgs>),
    /// Summarise, import, export and compare labels.
    #[command(subcommand)]
    Labels(LabelsCommand),
    /// Decide whether two answers are the same.
    Grade(GradeArgs),
    /// List the eviction policies and their parts.
    Policies(PoliciesArgs),
    /// Compute memory on paper: weights, keys and values, attention matrices, and the requests that fit on a device.
    Plan(PlanArgs),
    /// Write labelled traces as an HTML page: which windows does each answer depend on?
    Export(ExportArgs),
    /// Run all steps on the built-in model and problems, into one folder.
    Demo(DemoArgs),
    /// Check this machine, the built-in model and the grader.
    Doctor(DoctorArgs),
    /// List the claims of the papers, and say which of them hold on a run.
    Claims(ClaimsArgs),
    /// Describe the record files.
    Schema(SchemaArgs),
    /// List the signals that can be recorded.
    Signals(SignalsArgs),
    /// Print the completions of a shell: `epikv completions bash > ~/.local/share/bash-completion/completions/epikv`.
    Completions(CompletionsArgs),
    /// Write man pages of all commands into a folder.
    Man(ManArgs),
}

/// `epikv completions`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// `epikv man`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ManArgs {
    /// Folder of the pages.
    #[arg(long, value_name = "DIR", default_value = "man")]
    pub(crate) out: PathBuf,
}

/// Flags of every command that runs a model.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// `tiny`, `random:SEED[,layers=4,heads=4,kv_heads=2,..]`, a folder with config.json, or a .gguf file.
    /// `tiny` by default, except for imports, which need the model that wrote the traces.
    #[arg(long, value_name = "M")]
    pub(crate) model: Option<ModelRef>,
    /// How weights are held.
    #[arg(long, value_parser = word::<WeightFormat>(), default_value_t)]
    pub(crate) weights: WeightFormat,
    /// Device and numbers.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Number of threads; all cores by default. Changes no result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) threads: Option<u16>,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: u64,
    /// Only the first N items of the input.
    #[arg(long, value_name = "N", value_parser = count::items)]
    pub(crate) limit: Option<usize>,
    /// Replace results that are already there.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Read flags from a TOML file; its keys are flag names. Flags on the command line take precedence.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Print no progress on stderr.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print the figures of the summary as one JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `epikv problems`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProblemsArgs {
    /// Family of problems. The embedded model was trained on `tiny`.
    #[arg(value_enum, value_name = "FAMILY")]
    pub(crate) family: Family,
    /// Number of problems.
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = count::items)]
    pub(crate) n: usize,
    /// Seed of the problems.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: u64,
    /// Length of the traces.
    #[arg(long, value_parser = word::<Level>(), default_value_t = Level::Default)]
    pub(crate) level: Level,
    /// The JSON lines file to write.
    #[arg(long, value_name = "F.jsonl")]
    pub(crate) out: PathBuf,
    /// Replace a file that is already there.
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// Families of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// Chains of small sums over letters.
    Tiny,
}

/// `epikv trace`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceArgs {
    /// Model and run.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Problems: JSON lines, Parquet, CSV, or a folder of such parts.
    #[arg(long, value_name = "F", required_unless_present = "import", conflicts_with = "import")]
    pub(crate) problems: Option<PathBuf>,
    /// Traces made elsewhere: JSON lines, Parquet or CSV with text or token ids, or a folder of such parts. Needs --model;
    /// of a folder only tokenizer and chat template are read, of a GGUF file only the header.
    #[arg(long, value_name = "F")]
    pub(crate) import: Option<PathBuf>,
    /// Tags around the reasoning of imported traces, if not `<think>` or others that are known by name.
    #[arg(long, value_name = "OPEN,CLOSE")]
    pub(crate) think_tags: Option<Tags>,
    /// The traces file to write.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) out: PathBuf,
    /// Rows that run together, or `auto`: as many as fit into half of the free memory. Changes no result.
    #[arg(long, value_name = "N|auto", default_value = "8", conflicts_with = "import")]
    pub(crate) batch: Batch,
    /// How attention is computed. `explicit` computes attention weights, which attention scores need. On a CPU both
    /// give the same bits.
    #[arg(long, value_parser = word::<AttentionKernel>(), default_value_t)]
    pub(crate) kernel: AttentionKernel,
    /// Most new tokens of a trace.
    #[arg(long, default_value_t = 1024, value_name = "N", value_parser = count::tokens)]
    pub(crate) max_new: usize,
    /// Number of samples of each problem.
    #[arg(long, default_value_t = 1, value_name = "R", value_parser = count::samples)]
    pub(crate) samples: u32,
    /// How tokens are chosen.
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    /// How problems become prompts.
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
}

/// Flags of every command that generates.
#[derive(Debug, Clone, Args)]
pub(crate) struct SamplingArgs {
    /// Sampling temperature; 0 is greedy.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) temperature: f32,
    /// Share of the probability mass to sample from.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) top_p: f32,
}

/// Flags of every command that makes prompts of problems.
#[derive(Debug, Clone, Args)]
pub(crate) struct PromptArgs {
    /// How a problem becomes a prompt.
    #[arg(long, value_parser = word::<PromptStyle>(), default_value_t)]
    pub(crate) prompt_style: PromptStyle,
    /// A system message for chat prompts.
    #[arg(long)]
    pub(crate) system: Option<String>,
    /// Instruction that follows the problem in the user's turn.
    #[arg(long)]
    pub(crate) instruction: Option<String>,
    /// Date for a chat template that asks for one (`strftime_now`), in the template's format: `26 Jul 2024`. The clock
    /// is not read.
    #[arg(long, value_name = "TEXT")]
    pub(crate) template_date: Option<String>,
    /// Variables of the chat template, as JSON or as text: `enable_thinking=false;date_string=26 Jul 2024`.
    #[arg(long, value_name = "NAME=VALUE;..", value_parser = variables)]
    pub(crate) template_variables: Option<Variables>,
}

/// Variables of a chat template by name.
pub(crate) type Variables = BTreeMap<String, Value>;

/// `NAME=VALUE;NAME=VALUE`; a value that is no JSON is text.
fn variables(text: &str) -> Result<Variables, String> {
    let one = |part: &str| match part.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            let value = value.trim();
            Ok((name.trim().to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
        }
        _ => Err(format!("expected NAME=VALUE;NAME=VALUE, got {part:?}")),
    };
    text.split(';').map(one).collect()
}

/// `epikv policies`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PoliciesArgs {
    /// JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// The page docs/policies.md.
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

/// `epikv demo`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DemoArgs {
    /// Folder of the results. It must be new, or written by an earlier demo.
    #[arg(long, value_name = "DIR", default_value = "demo")]
    pub(crate) out: PathBuf,
    /// Measure what the papers' claims need as well, on more problems, and write claims.md.
    #[arg(long)]
    pub(crate) claims: bool,
    /// Number of threads; all cores by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512))]
    pub(crate) threads: Option<u16>,
    /// Device and numbers.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print no progress on stderr.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print the figures of the summary as one JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `epikv signals`.
#[derive(Debug, Clone, Args)]
pub(crate) struct SignalsArgs {
    /// JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// The page docs/signals.md.
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

/// `epikv claims`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClaimsArgs {
    /// A folder of results.
    #[arg(long, value_name = "DIR")]
    pub(crate) run: Option<PathBuf>,
    /// JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// A page in Markdown instead of text.
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

/// `epikv schema`.
#[derive(Debug, Clone, Args)]
pub(crate) struct SchemaArgs {
    /// One table; all by default.
    pub(crate) table: Option<String>,
    /// The page docs/files.md.
    #[arg(long, conflicts_with = "table")]
    pub(crate) markdown: bool,
    /// JSON instead of Markdown.
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
}
