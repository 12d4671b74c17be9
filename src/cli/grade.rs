//! Flags of `epikv grade`.

use std::path::PathBuf;

use clap::Args;
use epikv_grader::Mode;

/// `epikv grade`.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that may be typed")]
pub(crate) struct GradeArgs {
    /// An answer.
    #[arg(value_name = "PRED", required_unless_present = "file", requires = "gold", allow_hyphen_values = true)]
    pub(crate) pred: Option<String>,
    /// The answer to compare it with. The order of the two does not matter.
    #[arg(value_name = "GOLD", allow_hyphen_values = true)]
    pub(crate) gold: Option<String>,
    /// Grade the pairs of a file instead: JSON lines with `pred` and `gold`, and optionally `equal` (the expected
    /// verdict), `category` and `kind` (`pair`, or `extract` if `pred` is a whole text).
    #[arg(long, value_name = "F.jsonl", conflicts_with_all = ["pred", "gold", "text"])]
    pub(crate) file: Option<PathBuf>,
    /// PRED is a whole text. Find its answer first.
    #[arg(long)]
    pub(crate) text: bool,
    /// Give the reason; with --file, for each pair that is unsure or not as expected.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Ignore differences that benchmarks ignore, such as units. This is the default.
    #[arg(long, conflicts_with = "strict")]
    pub(crate) lenient: bool,
    /// Ignore no difference that may matter.
    #[arg(long)]
    pub(crate) strict: bool,
    /// One JSON object on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

impl GradeArgs {
    /// The mode that was asked for.
    pub(crate) fn mode(&self) -> Mode {
        if self.strict { Mode::Strict } else { Mode::Lenient }
    }
}
