//! What can go wrong between a policy's name and a generation under it.

use crate::budget::Budget;

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
    /// A budget in a form that is not known.
    #[error("budget: expected a number, prompt+N or prompt+N%, got {given:?}")]
    BudgetForm {
        /// As typed.
        given: String,
    },
    /// A budget relative to the generated length, which is not known.
    #[error("budget {budget}: expected the length of the generation without eviction, got none")]
    UnknownLength {
        /// The budget.
        budget: Budget,
    },
    /// A budget without room for what is protected.
    #[error(
        "budget of {budget} tokens is too small: {n_prompt} prompt + {recency} recent > {budget}; \
         expected at least {smallest}"
    )]
    Infeasible {
        /// Tokens a layer.
        budget: usize,
        /// Tokens of the prompt.
        n_prompt: usize,
        /// Recent tokens that the budget protects.
        recency: usize,
        /// Smallest budget with room for this prompt.
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
    /// A score that is not a number.
    #[error("score {score}: expected numbers, got one that is not at a position up to {last}")]
    NotANumber {
        /// The score.
        score: String,
        /// Latest position that was scored.
        last: u32,
    },
    /// The model failed.
    #[error("the model failed")]
    Model(#[from] epikv_model::Error),
}

impl Error {
    /// What the reader can try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownPolicy { .. } => Some("`epikv policies` lists them all".to_owned()),
            Self::Infeasible { smallest, .. } => {
                Some(format!("ask for {smallest} tokens or more, or --skip-infeasible"))
            }
            Self::UnknownLength { .. } => {
                Some("run the policy `full` too, or give the budget as a number or prompt+N".to_owned())
            }
            Self::Model(error) => error.hint(),
            _ => None,
        }
    }
}
