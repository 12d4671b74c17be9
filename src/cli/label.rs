//! Flags of `epikv label`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use epikv_labeler::filler::Filler;
use epikv_labeler::{AnswerKind, By, Intervention, Protocol, Rates, Stop};
use epikv_model::decoder::AttentionKernel;

use super::{ModelArgs, count, word};
use crate::batch::Batch;

/// `epikv label`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LabelArgs {
    /// Model and run.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Traces, as `epikv trace` writes them.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) traces: PathBuf,
    /// Folder of the results.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// How attention is computed. `explicit` computes attention weights, which attention scores need. On a CPU both
    /// give the same bits.
    #[arg(long, value_parser = word::<AttentionKernel>(), default_value_t)]
    pub(crate) kernel: AttentionKernel,
    /// Rows that run together, or `auto`: as many as fit into half of the free memory. Changes no result.
    #[arg(long, value_name = "N|auto", default_value = "8")]
    pub(crate) batch: Batch,
    /// How the labels are computed. Both protocols give the same labels.
    #[arg(long, value_parser = word::<Protocol>(), default_value_t)]
    pub(crate) protocol: Protocol,
    /// What is done to a window.
    #[arg(long, value_parser = word::<Intervention>(), default_value_t)]
    pub(crate) intervention: Intervention,
    /// With --intervention evict: number of tokens after the window that can still see it; 64 by default.
    #[arg(long, value_name = "W", value_parser = count::tokens_or_none)]
    pub(crate) lag: Option<usize>,
    /// Folder of occlusion labels of the same traces. The run says how often it agrees with them.
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,
    /// Tokens that overwrite a window: eos, pad, random, randmulti, token:ID or text:TEXT.
    #[arg(long, value_name = "KIND")]
    pub(crate) filler: Option<Filler>,
    /// Several fillers, separated by commas. Each labels into its own folder inside --out, and the results are compared
    /// window by window.
    #[arg(long, value_name = "KIND,..", value_delimiter = ',', conflicts_with_all = ["filler", "dry_run", "rates"])]
    pub(crate) arms: Vec<Filler>,
    /// Kind of window: --window tokens at every --stride, or the sentences, steps (paragraphs) or lines of the
    /// reasoning.
    #[arg(long, value_parser = word::<By>(), default_value_t)]
    pub(crate) by: By,
    /// Halve each flipping window down to the smallest part that flips alone, 4 tokens at least.
    #[arg(long)]
    pub(crate) refine: bool,
    /// Number of pairs of windows a trace to withhold together. Neither window of a pair flips alone.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::items_or_none)]
    pub(crate) pairs: usize,
    /// Tokens of a window.
    #[arg(long, value_name = "N", value_parser = count::tokens)]
    pub(crate) window: Option<usize>,
    /// Distance between window starts.
    #[arg(long, value_name = "N", value_parser = count::tokens)]
    pub(crate) stride: Option<usize>,
    /// Most new tokens of a regeneration.
    #[arg(long, value_name = "N", value_parser = count::tokens)]
    pub(crate) max_new: Option<usize>,
    /// Where a regeneration ends.
    #[arg(long, value_parser = word::<Stop>(), default_value_t)]
    pub(crate) stop: Stop,
    /// `paper`: the last box is compared with the gold answer string for string, no box or a truncated answer is a flip, the
    /// filler is eos, and windows start at the prompt's end.
    #[arg(long, value_enum)]
    pub(crate) preset: Option<Preset>,
    /// What is compared as the answer.
    #[arg(long, value_parser = word::<AnswerKind>(), default_value_t)]
    pub(crate) answer: AnswerKind,
    /// Number of windows to regenerate twice more, once with nothing hidden and once with the same tokens hidden. The
    /// rates of changed answers are reported.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count::items_or_none)]
    pub(crate) noise_floor: usize,
    /// Print windows, tokens, memory and time of this run and of the naive protocol, then stop.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// For --dry-run: tokens a second of another device, instead of rates measured here.
    #[arg(long, value_name = "PREFILL,DECODE", requires = "dry_run")]
    pub(crate) rates: Option<Rates>,
    /// Also label traces with a wrong answer or an unusable control. They stay marked.
    #[arg(long)]
    pub(crate) include_unusable: bool,
}

/// `--preset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The protocol of the published labels.
    Paper,
}
