//! A score from outside, in the grid beside the policies of the table: `cargo run --release --example my_policy`.
//!
//! `surprise` keeps the tokens that the model did not expect: the surprisal of each generated token, given once.

use anyhow::Result;
use epikv_eviction::{COMMON, Comparisons, NamedPolicy, Policy, PolicyRow, Score, Settings, Summary};
use epikv_model::linear::WeightFormat;
use epikv_model::taps::{LogitTap, ProbePlan};
use epikv_signals::{Chunk, Need, ScoreRow, ScoreSpec, Signal, SignalScore, SignalSpec};
use epikv_tasks::tiny::{Level, TinyProblem};

static SPEC: SignalSpec =
    SignalSpec { name: "surprise", doc: "Surprisal of the token itself", unit: "nat", source: "this example" };

/// One number a token. It holds no state, so there is nothing to forget.
#[derive(Debug)]
struct Surprise;

impl Signal for Surprise {
    fn spec(&self) -> &'static SignalSpec {
        &SPEC
    }

    /// What the forward pass must record.
    fn plan(&self) -> ProbePlan {
        ProbePlan::default().logits(LogitTap::Surprisal)
    }

    /// The scores of the next tokens; higher is kept, undefined is lowest.
    fn push(&mut self, chunk: &Chunk<'_>) -> epikv_signals::Result<Vec<Option<f32>>> {
        chunk.logits(SPEC.name, LogitTap::Surprisal)
    }

    fn reset(&mut self) {}
}

/// What the tables say of the score.
static SURPRISE: ScoreSpec = ScoreSpec {
    name: "surprise",
    doc: "Surprisal of the token itself",
    source: "this example",
    needs: &[Need::Logits],
    frozen: true,
    ..ScoreSpec::BLANK
};

static SCORE: ScoreRow = ScoreRow::plain(&SURPRISE, |_| Ok(Box::new(SignalScore::new(&SURPRISE, Box::new(Surprise)))));

/// Everything but the score is what all policies share, so the comparison is of scores alone.
static ROW: PolicyRow = PolicyRow {
    name: "surprise",
    doc: "Keeps tokens that the model did not expect",
    source: "this example",
    policy: Policy { score: Score::of(&SCORE), ..COMMON },
};

fn main() -> Result<()> {
    std::io::Write::write_all(&mut std::io::stdout(), accuracy(10)?.as_bytes()).map_err(Into::into)
}

/// The table of so many problems under four policies and two budgets.
pub(crate) fn accuracy(n: u64) -> Result<String> {
    let model = epikv_model::Model::open(&"tiny".parse()?, &epikv_model::Device::Cpu, WeightFormat::default())?;
    let problem = |index| TinyProblem::generate(Level::Middle, 7, index).to_problem();
    let policies = vec![NamedPolicy::from(&ROW), "epikv".parse()?, "random".parse()?, "window".parse()?];
    let settings = Settings::new(policies, vec!["prompt+25%".parse()?, "prompt+50%".parse()?]);
    let runs = epikv_eviction::evict(&model, &(0..n).map(problem).collect::<Vec<_>>(), None, &settings, None, &|_| ())?;
    Ok(epikv_eviction::report::accuracy(&Summary::of(&runs, &Comparisons::default())))
}
