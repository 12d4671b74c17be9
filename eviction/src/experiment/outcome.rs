//! Outcomes of a problem under a policy. Each outcome has its own word.

use epikv_schemas::Trace;
use epikv_tasks::trace::FinishReason;

epikv_words::words! {
    /// Outcome of a generation. `correct` follows from it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Outcome {
        /// The answer is that of the problem set.
        Correct = "correct",
        /// It is another one.
        Wrong = "wrong",
        /// The text ended by itself without an answer.
        NoBox = "no_box",
        /// Nothing was generated but the end.
        Empty = "empty",
        /// So it did, and the text went round in a circle.
        Loop = "loop",
        /// There is no answer, and the end of the text is no text.
        Garbage = "garbage",
        /// The limit of new tokens, or of the context, came before an answer.
        Truncated = "truncated",
        /// The grader could not say whether the answer is right.
        Unsure = "unsure",
        /// The problem set has no answer to compare with.
        NoGold = "no_gold",
        /// The budget cannot hold what some policy protects; nothing was generated.
        Infeasible = "infeasible",
        /// Nothing could be generated.
        Error = "error",
    }
}

impl Outcome {
    /// Whether the answer is right; a missing answer is not. Undefined (`None`) where that cannot be said.
    pub fn correct(self) -> Option<bool> {
        match self {
            Self::Correct => Some(true),
            Self::Wrong | Self::NoBox | Self::Truncated | Self::Loop | Self::Garbage | Self::Empty => Some(false),
            Self::Unsure | Self::NoGold | Self::Infeasible | Self::Error => None,
        }
    }

    /// The outcome of a generation that was graded as a trace; `generated` are its new tokens without the end, `text` what
    /// they read.
    pub(crate) fn of(trace: &Trace, finish: FinishReason, generated: &[u32], text: &str) -> Self {
        match (trace.gold.is_some(), trace.answer.is_some(), trace.correct) {
            (false, ..) => Self::NoGold,
            (true, true, Some(true)) => Self::Correct,
            (true, true, Some(false)) => Self::Wrong,
            (true, true, None) => Self::Unsure,
            (true, false, _) if generated.is_empty() => Self::Empty,
            (true, false, _) if finish.is_cut() && goes_round(generated) => Self::Loop,
            (true, false, _) if is_garbage(text) => Self::Garbage,
            (true, false, _) if finish.is_cut() => Self::Truncated,
            (true, false, _) => Self::NoBox,
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

/// Whether a text ends in characters that are no text: more than 30 of the last 100 are not ASCII, or one of them makes up
/// more than half of the last 200. So a text in Chinese counts too; the rule is meant for sets in English.
///
/// # References
/// `VaSE` (arXiv 2606.03928), the failure classifier of its code.
fn is_garbage(text: &str) -> bool {
    let last = |n: usize| text.chars().rev().take(n);
    if last(100).filter(|c| !c.is_ascii()).count() > 30 {
        return true;
    }
    let mut counts = std::collections::BTreeMap::new();
    for c in last(200) {
        *counts.entry(c).or_insert(0_usize) += 1;
    }
    last(200).count() == 200 && counts.values().any(|&n| n > 100)
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
    fn garbage_is_no_text() {
        assert!(!is_garbage("") && !is_garbage(&"so the sum is 3 + 4 = 7, and then ".repeat(9)));
        assert!(is_garbage(&"\u{4e00}".repeat(31)) && !is_garbage(&"\u{4e00}".repeat(30)));
        assert!(is_garbage(&"!".repeat(200)) && !is_garbage(&"!".repeat(100)));
    }

    #[test]
    fn names_are_those_of_the_schema() {
        let spec = <epikv_schemas::EvictionRun as epikv_schemas::Record>::TABLE.column("outcome").expect("a column");
        let epikv_schemas::Role::Word(words) = spec.role else { panic!("words") };
        let names: Vec<&str> = Outcome::ALL.iter().map(|outcome| outcome.name()).collect();
        assert_eq!(names, words);
    }
}
