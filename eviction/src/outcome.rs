//! What became of a problem under a policy, in words that are never folded into one another.

use epikv_model::session::Finish;
use epikv_schemas::Trace;
use epikv_tasks::trace::FinishReason;

/// What became of a generation. `correct` follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The answer is that of the problem set.
    Right,
    /// It is another one.
    Wrong,
    /// The text ended by itself without an answer.
    NoAnswer,
    /// The limit of new tokens, or of the context, came before an answer.
    Truncated,
    /// So it did, and the text went round in a circle.
    Loop,
    /// Nothing was generated but the end.
    Empty,
    /// The grader could not say whether the answer is right.
    Unsure,
    /// The problem set has no answer to compare with.
    NoGold,
    /// The budget cannot hold what some policy protects; nothing was generated.
    Infeasible,
    /// Nothing could be generated.
    Error,
}

impl Outcome {
    /// Every outcome, in the order of tables.
    pub const ALL: [Self; 10] = [
        Self::Right,
        Self::Wrong,
        Self::NoAnswer,
        Self::Truncated,
        Self::Loop,
        Self::Empty,
        Self::Unsure,
        Self::NoGold,
        Self::Infeasible,
        Self::Error,
    ];

    /// Name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::NoAnswer => "no_answer",
            Self::Truncated => "truncated",
            Self::Loop => "loop",
            Self::Empty => "empty",
            Self::Unsure => "unsure",
            Self::NoGold => "no_gold",
            Self::Infeasible => "infeasible",
            Self::Error => "error",
        }
    }

    /// Whether the answer is right; a missing answer is not. Undefined (`None`) where that cannot be said.
    pub fn correct(self) -> Option<bool> {
        match self {
            Self::Right => Some(true),
            Self::Wrong | Self::NoAnswer | Self::Truncated | Self::Loop | Self::Empty => Some(false),
            Self::Unsure | Self::NoGold | Self::Infeasible | Self::Error => None,
        }
    }

    /// The outcome of a generation that was graded as a trace; `generated` are its new tokens without the end.
    pub(crate) fn of(trace: &Trace, finish: FinishReason, generated: &[u32]) -> Self {
        match (trace.gold.is_some(), trace.answer.is_some(), trace.correct) {
            (false, ..) => Self::NoGold,
            (true, true, Some(true)) => Self::Right,
            (true, true, Some(false)) => Self::Wrong,
            (true, true, None) => Self::Unsure,
            (true, false, _) if generated.is_empty() => Self::Empty,
            (true, false, _) if finish.is_cut() && goes_round(generated) => Self::Loop,
            (true, false, _) if finish.is_cut() => Self::Truncated,
            (true, false, _) => Self::NoAnswer,
        }
    }
}

/// Longest circle that is looked for.
const LONGEST_PERIOD: usize = 128;

/// Rounds that make a circle, and tokens that they must cover at least.
const ROUNDS: usize = 4;
const LEAST_TOKENS: usize = 48;

/// Whether the tokens end in a circle: the last of them, four rounds and 48 tokens at least, repeat with some period.
fn goes_round(tokens: &[u32]) -> bool {
    (1..=LONGEST_PERIOD).any(|period| {
        let covered = (ROUNDS * period).max(LEAST_TOKENS);
        tokens.len() >= covered && {
            let tail = &tokens[tokens.len() - covered..];
            tail.iter().zip(&tail[period..]).all(|(a, b)| a == b)
        }
    })
}

/// Why a generation ended, in the words of traces; `None` where its logits were not numbers.
pub(crate) fn finish_reason(finish: Finish) -> Option<FinishReason> {
    match finish {
        Finish::Eos | Finish::Stopped => Some(FinishReason::Eos),
        Finish::Length => Some(FinishReason::Length),
        Finish::Context => Some(FinishReason::Context),
        Finish::NotANumber => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_other_text_is_not() {
        let round = |period: u32, n: u32| (0..n).map(|i| i % period).collect::<Vec<_>>();
        assert!(goes_round(&round(1, 48)) && !goes_round(&round(1, 47)));
        assert!(goes_round(&round(30, 120)) && !goes_round(&round(30, 119)));
        let mut late = (1000..1300).collect::<Vec<u32>>();
        assert!(!goes_round(&late));
        late.extend(round(7, 60));
        assert!(goes_round(&late));
        late.push(2000);
        assert!(!goes_round(&late), "it went on");
    }

    #[test]
    fn names_are_those_of_the_schema() {
        let spec = <epikv_schemas::EvictionRun as epikv_schemas::Record>::TABLE.column("outcome").expect("a column");
        let epikv_schemas::Role::Word(words) = spec.role else { panic!("words") };
        let names: Vec<&str> = Outcome::ALL.iter().map(|outcome| outcome.name()).collect();
        assert_eq!(names, words);
    }
}
