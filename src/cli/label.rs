//! Flags of `epikv label`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use epikv_labeler::filler::Filler;
use epikv_labeler::intervention::DEFAULT_LAG;
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
    #[arg(long, value_name = "F.parquet", required_unless_present = "summary")]
    pub(crate) traces: Option<PathBuf>,
    /// Folder of the results.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["summary", "export", "compare_sentences"])]
    pub(crate) out: Option<PathBuf>,
    /// Label nothing: print what the labels in these folders say, under every mapping of outcomes to flips; with --traces
    /// also how well they recover what the answers are known to need.
    #[arg(long, value_name = "DIR,..", value_delimiter = ',', conflicts_with = "out")]
    pub(crate) summary: Vec<PathBuf>,
    /// Label nothing: take over the labels of JSON lines (`token_ids`, `importance`) for the same traces, imported before.
    #[arg(long, value_name = "F.jsonl", requires_all = ["traces", "out"])]
    pub(crate) import: Option<PathBuf>,
    /// Label nothing: write the labels in --labels as such JSON lines.
    #[arg(long, value_name = "F.jsonl", requires_all = ["traces", "labels"], conflicts_with_all = ["import", "out"])]
    pub(crate) export: Option<PathBuf>,
    /// Label nothing: compare the labels in --labels with the sentence scores of JSON lines (`id`, `columns`, `chunks`).
    #[arg(long, value_name = "F.jsonl", requires_all = ["traces", "labels"], conflicts_with_all = ["import", "export"])]
    pub(crate) compare_sentences: Option<PathBuf>,
    /// Folder of labels for --export and --compare-sentences.
    #[arg(long, value_name = "DIR")]
    pub(crate) labels: Option<PathBuf>,
    /// How attention is computed. `explicit` looks at every attention weight, as whoever scores by attention must; on a CPU
    /// both give the same bits.
    #[arg(long, value_parser = word::<AttentionKernel>(), default_value_t)]
    pub(crate) kernel: AttentionKernel,
    /// Rows that run together, or `auto`: as many as half of the free memory holds. Changes no result.
    #[arg(long, value_name = "N|auto", default_value = "8", conflicts_with_all = ["summary", "import", "export", "compare_sentences"])]
    pub(crate) batch: Batch,
    /// The way to the labels.
    #[arg(long, value_parser = word::<Protocol>(), default_value_t)]
    pub(crate) protocol: Protocol,
    /// What is done to a window.
    #[arg(long, value_parser = word::<Intervention>(), default_value_t)]
    pub(crate) intervention: Intervention,
    /// With --intervention evict: tokens of the trace after the window's end that still see it.
    #[arg(long, value_name = "W", default_value_t = DEFAULT_LAG, value_parser = count::tokens_or_none)]
    pub(crate) lag: usize,
    /// Occlusion labels of the same traces, to say how often this run agrees with them.
    #[arg(long, value_name = "DIR", conflicts_with = "summary")]
    pub(crate) against: Option<PathBuf>,
    /// What stands in the place of an overwritten window: eos, pad, random, randmulti, token:ID or text:TEXT.
    #[arg(long, value_name = "KIND")]
    pub(crate) filler: Option<Filler>,
    /// Several fillers, separated by commas: each labels into a folder of its own inside --out, and the arms are compared
    /// window by window.
    #[arg(long, value_name = "KIND,..", value_delimiter = ',', conflicts_with_all = ["filler", "summary", "dry_run"])]
    pub(crate) arms: Vec<Filler>,
    /// What a window is: --window tokens at every --stride, or the sentences, steps (paragraphs) or lines of the reasoning.
    #[arg(long, value_parser = word::<By>(), default_value_t)]
    pub(crate) by: By,
    /// Halve each flipping window down to the smallest part, of 4 tokens or more, that flips alone.
    #[arg(long)]
    pub(crate) refine: bool,
    /// Pairs of windows a trace, neither of which flips alone, to withhold together.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::items_or_none)]
    pub(crate) pairs: usize,
    /// Tokens of a window.
    #[arg(long, value_name = "N", value_parser = count::tokens)]
    pub(crate) window: Option<usize>,
    /// Distance between window starts.
    #[arg(long, value_name = "N", value_parser = count::tokens)]
    pub(crate) stride: Option<usize>,
    /// New tokens of a regeneration at most.
    #[arg(long, value_name = "N", value_parser = count::tokens)]
    pub(crate) max_new: Option<usize>,
    /// Where a regeneration ends.
    #[arg(long, value_parser = word::<Stop>(), default_value_t)]
    pub(crate) stop: Stop,
    /// `paper`: against gold, truncated flips, filler eos, windows from the prompt's end.
    #[arg(long, value_enum)]
    pub(crate) preset: Option<Preset>,
    /// What counts as the answer: `math` finds and grades it, `text` compares the whole regenerated text.
    #[arg(long, value_parser = word::<AnswerKind>(), default_value_t)]
    pub(crate) answer: AnswerKind,
    /// Windows that are regenerated twice more, with nothing hidden and with the same hidden; their rates are reported.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = count::items_or_none)]
    pub(crate) noise_floor: usize,
    /// Print windows, tokens, memory and time of the run and of the naive protocol, and stop there.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Tokens a second of another device for --dry-run, instead of those measured here.
    #[arg(long, value_name = "PREFILL,DECODE", requires = "dry_run")]
    pub(crate) rates: Option<Rates>,
    /// Label wrong traces and traces with an unusable control too; they stay marked.
    #[arg(long)]
    pub(crate) include_unusable: bool,
}

/// `--preset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The protocol of the published labels.
    Paper,
}
