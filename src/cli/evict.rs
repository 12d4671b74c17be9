//! Flags of `epikv evict`.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use epikv_eviction::{Budget, Match};

use super::{ModelArgs, PromptArgs, SamplingArgs, budget, count, word};
use crate::batch::Batch;

/// `I/N`, from 1 as typed; the index is from 0.
fn shard(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse::<usize>().ok()?, n.parse::<usize>().ok()?)));
    match numbers {
        Some((i, n)) if (1..=n).contains(&i) => Ok((i - 1, n)),
        _ => Err("expected I/N with I from 1 to N, as in 2/8".to_owned()),
    }
}

/// `A:B`.
fn contrast(text: &str) -> Result<(String, String), String> {
    match text.trim().split_once(':') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && a != b => Ok((a.to_owned(), b.to_owned())),
        _ => Err("expected two policies, as in epikv:random".to_owned()),
    }
}

/// A share between 0 and 1.
fn margin(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(margin) if margin > 0.0 && margin < 1.0 => Ok(margin),
        _ => Err("expected a share between 0 and 1, as in 0.05".to_owned()),
    }
}

/// Flags of every command that runs policies under budgets.
#[derive(Debug, Clone, Args)]
pub(crate) struct PolicyArgs {
    /// Policies, separated by commas: names of `epikv policies`, with parts replaced as in
    /// `h2o;protect=sinks(4)+recency;trigger=every(64)`, or `all`. `full` always runs.
    #[arg(long, value_name = "P,..", default_value = "all")]
    pub(crate) policies: String,
    /// Budgets in tokens a layer, separated by commas: `128`, `prompt+32`, or `prompt+25%` of the tokens generated
    /// without eviction. A budget includes the prompt and all other protected tokens.
    #[arg(long, value_name = "K,..", required = true, value_delimiter = ',', action = ArgAction::Set, value_parser = budget)]
    pub(crate) budgets: Vec<Budget>,
    /// Folder of the results.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Rows that run together, or `auto`: as many as fit into half of the free memory. Changes no result.
    #[arg(long, value_name = "N|auto", default_value = "8")]
    pub(crate) batch: Batch,
    /// Folder that `epikv label` wrote, for policies that use labels as scores. Its traces must have the names of the
    /// problems.
    #[arg(long, value_name = "DIR")]
    pub(crate) labels: Option<PathBuf>,
    /// If one policy cannot fit a problem into a budget, every policy skips it. Without this flag the run ends.
    #[arg(long)]
    pub(crate) skip_infeasible: bool,
    /// Run one policy with each of these scores, separated by commas, and keep all other parts: the controlled
    /// experiment. Replaces --policies.
    #[arg(long, value_name = "score=A,B,..", conflicts_with = "policies")]
    pub(crate) swap: Option<String>,
    /// Parts of the policy that --swap runs, where they differ from the default: `protect=prompt+recency;trigger=each`.
    #[arg(long, value_name = "PART=V;..")]
    pub(crate) hold: Option<String>,
    /// Which size of the cache equals the budget.
    #[arg(long = "match", value_parser = word::<Match>(), default_value_t)]
    pub(crate) matched: Match,
    /// Repeat randomised policies so many times, with other random draws. The report has the variance between seeds.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) eviction_seeds: u32,
    /// Layers for `epikv` and `epikv-raw`, from the file selection.parquet of `epikv correlate --pick`. Refused if the
    /// layers were chosen on a problem of this run.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) layers_from: Option<PathBuf>,
    /// Problem set in --layers-from whose choice is used, if the file has several.
    #[arg(long, value_name = "NAME", requires = "layers_from")]
    pub(crate) layers_dataset: Option<String>,
}

/// `epikv evict`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EvictArgs {
    /// Model and run.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Problems: JSON lines or Parquet.
    #[arg(long, value_name = "F")]
    pub(crate) problems: PathBuf,
    /// Policies and budgets.
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// Most new tokens of a generation.
    #[arg(long, default_value_t = 1024, value_name = "N", value_parser = count::tokens)]
    pub(crate) max_new: usize,
    /// Samples of each problem. Each sample has its own random numbers.
    #[arg(long, default_value_t = 1, value_name = "R", value_parser = count::samples)]
    pub(crate) samples: u32,
    /// Run only the I-th of N shards of the problems. Shards may run at the same time in one folder. Then run once more
    /// without this flag: it writes the tables.
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub(crate) shard: Option<(usize, usize)>,
    /// Write every eviction, with position, score and reason, to files `eviction_steps-*.parquet`.
    #[arg(long)]
    pub(crate) record_steps: bool,
    /// A third policy that the others are compared with, beside `full` and `random`.
    #[arg(long, value_name = "P")]
    pub(crate) baseline: Option<String>,
    /// Comparisons declared before the run, separated by commas: `epikv:random,h2o:full`. Their p-values are adjusted
    /// by Holm. All other comparisons are called exploratory.
    #[arg(long, value_name = "A:B,..", value_delimiter = ',', value_parser = contrast)]
    pub(crate) primary: Vec<(String, String)>,
    /// Margin of equivalence, as a share of right answers. Declare it before the run; it is refused when generations
    /// are already finished.
    #[arg(long, value_name = "M", value_parser = margin)]
    pub(crate) margin: Option<f64>,
    /// Signals of `epikv signals` to record while tokens are evicted, into `eviction_signals.parquet`. Their values
    /// without eviction stand beside them, as long as the tokens are the same.
    #[arg(long, value_name = "S,..", value_delimiter = ',')]
    pub(crate) record_signals: Vec<String>,
    /// How tokens are chosen.
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    /// How problems become prompts.
    #[command(flatten)]
    pub(crate) prompt: PromptArgs,
}

/// `epikv replay`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayArgs {
    /// Model and run.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Traces to feed under each policy, as `epikv trace` writes them. Only their answers are decoded.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) traces: PathBuf,
    /// Policies and budgets.
    #[command(flatten)]
    pub(crate) policies: PolicyArgs,
    /// Most new tokens of a replayed answer.
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = count::tokens)]
    pub(crate) answer_tokens: usize,
}
