//! Flags of `epikv correlate`.

use std::path::PathBuf;

use clap::Args;
use epikv_analyzer::WindowFrom;
use epikv_model::decoder::AttentionKernel;
use epikv_stats::FisherMethod;

use super::{ModelArgs, count, word};

/// `epikv correlate`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CorrelateArgs {
    /// Model and run.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Traces, as `epikv trace` writes them.
    #[arg(long, value_name = "F.parquet")]
    pub(crate) traces: PathBuf,
    /// Folder that `epikv label` wrote.
    #[arg(long, value_name = "DIR")]
    pub(crate) labels: PathBuf,
    /// Folder of the results.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Folders of earlier runs, separated by commas. Their `signals_*.parquet` are correlated instead of recording
    /// signals again. One column is read at a time, so neither a model nor much memory is needed.
    #[arg(long, value_delimiter = ',', value_name = "DIR,..")]
    pub(crate) recorded: Vec<PathBuf>,
    /// With --recorded: compute the coefficients only, without the controls for position. `rho_partial_pos`,
    /// `rho_stratified`, `rho_pos` and `lag1` are then null.
    #[arg(long, requires = "recorded")]
    pub(crate) rho_only: bool,
    /// Published coefficients to draw as a second line: a CSV table with the columns `signal` and `spearman_rho`. Its
    /// rows are named `hs_l2_diff_lN` or `hs_l2_lN` (or `hs_l2` with a column `layer`), with `_rolling64` or `_ema09`
    /// at the end if they are smoothed.
    #[arg(long, value_name = "F.csv")]
    pub(crate) reference: Option<PathBuf>,
    /// Signals, separated by commas, or all; `epikv signals` lists them. A score of `epikv policies` is a signal too:
    /// SCORE, or SCORE@age=W.
    #[arg(long, default_value = "all", value_name = "A,B")]
    pub(crate) signals: String,
    /// How attention is computed. `explicit` computes attention weights, layer by layer and tile by tile, and records
    /// the signals that need them. On a CPU both give the same bits in all other columns.
    #[arg(long, value_parser = word::<AttentionKernel>(), default_value_t)]
    pub(crate) kernel: AttentionKernel,
    /// Smoothers, separated by commas, or all: raw, mean, ema, z, max.
    #[arg(long, default_value = "all", value_name = "A,B")]
    pub(crate) smooth: String,
    /// Tokens in the window of the smoothers. The decay of ema is set to match.
    #[arg(long, default_value_t = epikv_signals::DEFAULT_WINDOW, value_name = "N", value_parser = window)]
    pub(crate) smooth_window: usize,
    /// Where smoothers start, with an empty window: at the first decoded token, or at the prompt's first token as in
    /// the published study.
    #[arg(long, value_parser = word::<WindowFrom>(), default_value_t)]
    pub(crate) window_from: WindowFrom,
    /// Budget under which scores are replayed as policies: `512`, `prompt+32` or `prompt+25%` of the generated tokens.
    #[arg(long, default_value = "prompt+25%", value_name = "K", value_parser = budget_text)]
    pub(crate) budget: String,
    /// Also replay all layers and pairs of layers. The best is chosen on some traces and judged on the others.
    #[arg(long)]
    pub(crate) pick: bool,
    /// Two signals to compare on the same labels, such as `hs_l2@layer=10@smooth=mean64,epikv`. A `-` before a name
    /// reverses its sign. May be repeated. Without this flag every score is compared with epikv.
    #[arg(long, value_name = "A,B", allow_hyphen_values = true)]
    pub(crate) compare: Vec<String>,
    /// Problem sets that are also analysed as one, joined by +, such as `aime24+aime25+aime26`. May be repeated.
    #[arg(long, value_name = "A+B")]
    pub(crate) pool: Vec<String>,
    /// Folder of another run of this command, with another model or other labels. Its problem sets are compared with
    /// those of this run. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Vec<PathBuf>,
    /// Problems with a level of difficulty. Without this flag the length of the trace is taken as the difficulty.
    #[arg(long, value_name = "F")]
    pub(crate) difficulty: Option<PathBuf>,
    /// Replicates of the bootstrap over problems; 0 for none.
    #[arg(long, default_value_t = 2000, value_name = "B", value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) bootstrap: u32,
    /// Replicates of the tests against labels of other problems and against shifted labels; 0 for none.
    #[arg(long, default_value_t = 499, value_name = "B", value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) surrogates: u32,
    /// Longest lag of the lag profiles, in tokens before and after a label. The lags are 0 and powers of two; 0 here
    /// for no profiles.
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(..=65_536))]
    pub(crate) max_lag: u32,
    /// Formula of the confidence interval for rho. Its n is the number of traces.
    #[arg(long, value_parser = word::<FisherMethod>(), default_value_t)]
    pub(crate) ci: FisherMethod,
    /// Leave out the rows of random weights. They need as much memory as the model.
    #[arg(long)]
    pub(crate) no_random_weights: bool,
}

/// A smoother's window: no longer than any trace.
fn window(text: &str) -> Result<usize, String> {
    count::within(text, 1..=1 << 20)
}

/// A budget as it is typed, which the files keep.
fn budget_text(text: &str) -> Result<String, epikv_eviction::Error> {
    super::budget(text).map(|_| text.to_owned())
}
