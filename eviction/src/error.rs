//! Errors of policies, budgets and runs.

mod declared;
mod layers;

use std::path::PathBuf;

use epikv_words::Hint;

use crate::nearest::nearest;

/// Largest number in a budget: beyond any context, and sums of such numbers are far from the largest integer.
pub(crate) const MOST_IN_BUDGET: usize = 1 << 24;

pub use self::declared::DeclaredError;
pub use self::layers::LayersError;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Errors of choosing a policy and a budget and of decoding under them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name that is not in the table.
    #[error("unknown policy {given:?}: expected one of {}", known.join(", "))]
    UnknownPolicy {
        /// As typed.
        given: String,
        /// The names of the table.
        known: Vec<&'static str>,
    },
    /// A part that policies do not have.
    #[error("policy {policy:?}: unknown part {given:?}: expected one of {}", known.join(", "))]
    UnknownPart {
        /// As typed.
        policy: String,
        /// The part as typed.
        given: String,
        /// The parts of a policy.
        known: &'static [&'static str],
    },
    /// A part of a policy that is not `name=value`, or comes twice.
    #[error("policy {policy:?}: expected NAME;part=value;part=value, each part once, got {given:?}")]
    PartForm {
        /// As typed.
        policy: String,
        /// The part as typed.
        given: String,
    },
    /// A value that a part cannot have.
    #[error("policy part {part}: expected {expected}, got {got:?}")]
    PartValue {
        /// The part.
        part: &'static str,
        /// Its forms.
        expected: &'static str,
        /// As typed.
        got: String,
    },
    /// A selection that the score does not fit.
    #[error("select={select}: expected a score that {expected}, got {score}")]
    SelectOf {
        /// The selection.
        select: String,
        /// What the score must be.
        expected: &'static str,
        /// The score.
        score: String,
    },
    /// A part that would change nothing.
    #[error("{part}: expected a part that changes something, but {reason}")]
    PartDoesNothing {
        /// The part as typed.
        part: String,
        /// Why it changes nothing.
        reason: String,
    },
    /// A budget that is divided although all layers and heads share one kept set.
    #[error("allocate={allocate}: expected scope=per-layer or scope=per-head, got scope=global")]
    AllocateOf {
        /// The division.
        allocate: String,
    },
    /// A division that does not keep to the budget.
    #[error(
        "allocate={allocate}: expected {n_sets} budgets of at least {least} tokens and at most {most} together, got {got:?}"
    )]
    Allocation {
        /// The division.
        allocate: String,
        /// Kept sets.
        n_sets: usize,
        /// Tokens that each must hold.
        least: usize,
        /// Tokens that all may hold together.
        most: usize,
        /// What came.
        got: Vec<usize>,
    },
    /// A budget in a form that is not known.
    #[error(
        "budget: expected a number from 1 to {most}, or prompt+N or prompt+N% with N up to that, got {given:?}",
        most = MOST_IN_BUDGET
    )]
    BudgetForm {
        /// As typed.
        given: String,
    },
    /// A budget relative to the generated length, which is not known.
    #[error("budget {budget}: expected the length of the generation without eviction, got none")]
    UnknownLength {
        /// The budget.
        budget: String,
    },
    /// A budget without room for what is protected.
    #[error(
        "budget of {budget} tokens is too small: {n_first} first + {recency} recent > {budget}; \
         expected at least {smallest}"
    )]
    Infeasible {
        /// Tokens a layer.
        budget: usize,
        /// First tokens that are protected: prompt or sinks.
        n_first: usize,
        /// Recent tokens that are protected.
        recency: usize,
        /// Smallest budget with room for them.
        smallest: usize,
    },
    /// A reserve that takes all that is not protected, and more.
    #[error(
        "{select} at a budget of {budget} tokens: expected a reserve of at most {room} (what is not protected), got {reserve}"
    )]
    ReserveOf {
        /// The selection.
        select: String,
        /// Tokens a layer.
        budget: usize,
        /// Tokens that the reserve asks for.
        reserve: usize,
        /// Tokens that are not protected.
        room: usize,
    },
    /// A trigger that holds more between evictions than the matched size allows.
    #[error("trigger {trigger}: expected to hold at most {budget} tokens ({matched}), got more between its evictions")]
    Unmatched {
        /// Tokens a layer.
        budget: usize,
        /// What waits too long.
        trigger: String,
        /// Which size the budget is.
        matched: String,
    },
    /// Problems for which a budget has no room for what a policy protects.
    #[error(
        "budget {budget} is too small for {n_infeasible} of {n_problems} problems under {policy}, first {problem}; \
         expected at least {smallest} tokens"
    )]
    InfeasibleProblems {
        /// The budget.
        budget: String,
        /// A policy for which it is too small.
        policy: String,
        /// How many problems.
        n_infeasible: usize,
        /// Of how many.
        n_problems: usize,
        /// The first of them.
        problem: String,
        /// Smallest budget with room for all of them under every policy.
        smallest: usize,
    },
    /// Limits made for another prompt.
    #[error("limits: expected those of a prompt of {n_prompt} tokens, got those of one of {limits_for}")]
    OtherPrompt {
        /// Tokens of the prompt to decode from.
        n_prompt: usize,
        /// Tokens of the prompt that the limits were checked for.
        limits_for: usize,
    },
    /// A policy that replays labels, and no labels.
    #[error("policy {policy}: expected labels of the problems, got none")]
    NoLabels {
        /// The policy.
        policy: String,
    },
    /// Labels of other tokens than the prompt's.
    #[error("labels of {problem}: expected token {expected} at position {position}, got {got}")]
    OtherLabels {
        /// The problem.
        problem: String,
        /// The first position that differs.
        position: usize,
        /// The prompt's token.
        expected: u32,
        /// That of the labels.
        got: String,
    },
    /// A signal that is known at the end of a sequence only.
    #[error("signal {signal}: expected one that is known when its token is fed, got one that is known later")]
    LateSignal {
        /// The signal.
        signal: String,
    },
    /// A score that does not fit the cache.
    #[error("score: expected one number a token of each kept set, {expected:?} tokens, got {got:?} numbers")]
    ScoreShape {
        /// Tokens that each kept set holds.
        expected: Vec<usize>,
        /// Numbers that came.
        got: Vec<usize>,
    },
    /// A generation that the folder already has, made from something else.
    #[error(
        "{}: {problem} under {policy}{}, sample {sample}, was made with another model, prompt, limit or sampling",
        folder.display(),
        budget.as_ref().map_or(String::new(), |budget| format!(" at {budget}"))
    )]
    Conflict {
        /// The folder of results.
        folder: PathBuf,
        /// The problem.
        problem: String,
        /// The policy.
        policy: String,
        /// The budget, where there is one.
        budget: Option<String>,
        /// Which sample.
        sample: i32,
    },
    /// A folder that cannot be read or a file that cannot be removed.
    #[error("{}", path.display())]
    Folder {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A record file could not be read or written.
    #[error(transparent)]
    Files(Box<epikv_schemas::Error>),
    /// A count that does not fit its column.
    #[error("{what}: expected at most {}, got {got}", i32::MAX)]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// The count.
        got: usize,
    },
    /// The model failed.
    #[error("the model failed")]
    Model(#[from] epikv_model::Error),
    /// A score or a signal could not be computed.
    #[error(transparent)]
    Signals(#[from] epikv_signals::Error),
    /// One of several things that were asked for, by its flag and name, and what is wrong with it.
    #[error("{flag} {name}: {error}")]
    Of {
        /// The flag.
        flag: &'static str,
        /// What it was given.
        name: String,
        /// What is wrong.
        error: Box<Self>,
    },
    /// Layers that were chosen from a file cannot be used.
    #[error(transparent)]
    Layers(Box<LayersError>),
    /// What was declared does not count.
    #[error(transparent)]
    Declared(Box<DeclaredError>),
    /// A problem could not become a prompt, or a generation a graded answer.
    #[error(transparent)]
    Tasks(Box<epikv_tasks::Error>),
}

/// The hint to a name that is not known.
fn with_list(meant: Option<&str>) -> String {
    let list = "`epikv policies` lists them all, with their parts";
    meant.map_or(list.to_owned(), |meant| format!("did you mean {meant:?}? {list}"))
}

impl From<LayersError> for Error {
    fn from(error: LayersError) -> Self {
        Self::Layers(Box::new(error))
    }
}

impl From<DeclaredError> for Error {
    fn from(error: DeclaredError) -> Self {
        Self::Declared(Box::new(error))
    }
}

impl From<epikv_schemas::Error> for Error {
    fn from(error: epikv_schemas::Error) -> Self {
        Self::Files(Box::new(error))
    }
}

impl From<epikv_tasks::Error> for Error {
    fn from(error: epikv_tasks::Error) -> Self {
        Self::Tasks(Box::new(error))
    }
}

impl Error {
    /// The error with what it is an error of.
    pub(crate) fn of(self, flag: &'static str, name: impl Into<String>) -> Self {
        Self::Of { flag, name: name.into(), error: Box::new(self) }
    }
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownPolicy { given, known } => Some(with_list(nearest(given, known.iter().copied()))),
            Self::UnknownPart { given, known, .. } => Some(with_list(nearest(given, known.iter().copied()))),
            Self::PartValue { expected, got, .. } => {
                // Only the name of `name(argument)` can be misspelt; of one that is right the argument is wrong.
                let name = |word: &'static str| word.split(['(', ':']).next().unwrap_or(word).trim();
                let forms = expected.split([',', ' ']).map(name).filter(|word| word.len() > 2);
                let given = got.split('(').next().unwrap_or(got);
                Some(with_list(nearest(given, forms).filter(|meant| *meant != given)))
            }
            Self::PartForm { .. } => Some(with_list(None)),
            Self::SelectOf { .. } => {
                Some("select=draw works with the scores h2o, tova, snapkv, snapkv-decode and vase".to_owned())
            }
            Self::PartDoesNothing { .. } => Some("leave the part out, or see `epikv policies` for others".to_owned()),
            Self::ReserveOf { .. } => {
                Some("ask for a larger budget, or a smaller reserve in select=..+values(N)".to_owned())
            }
            Self::Infeasible { smallest, .. } | Self::InfeasibleProblems { smallest, .. } => {
                Some(format!("ask for {smallest} tokens or more, or --skip-infeasible"))
            }
            Self::Unmatched { .. } => Some("--match steady counts the tokens after an eviction only".to_owned()),
            Self::UnknownLength { .. } => {
                Some("run the policy `full` too, or give the budget as a number or prompt+N".to_owned())
            }
            Self::NoLabels { .. } => Some("--labels DIR names the folder that `epikv label` wrote".to_owned()),
            Self::OtherLabels { .. } => {
                Some("use the model and prompt flags that the labels were made with".to_owned())
            }
            Self::Conflict { .. } => Some("--fresh starts over, another --out keeps what is there".to_owned()),
            Self::Layers(error) => error.hint(),
            Self::Model(error) => error.hint(),
            Self::Signals(error) => error.hint(),
            Self::Of { error, .. } => error.hint(),
            Self::Tasks(error) => error.hint(),
            Self::Files(error) => error.hint(),
            _ => None,
        }
    }
}
