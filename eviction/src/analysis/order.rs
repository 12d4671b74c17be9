//! In which order tables list budgets and policies.

use crate::policy::registry::POLICIES;

/// Plain numbers first, ascending, then relative budgets; no budget before all.
pub(crate) fn order_of_budget(budget: Option<&str>) -> (u8, usize, &str) {
    match budget {
        None => (0, 0, ""),
        Some(text) => match text.parse() {
            Ok(tokens) => (1, tokens, ""),
            Err(_) => (2, 0, text),
        },
    }
}

/// By the row of the table of policies.
pub(crate) fn order_of_policy(policy: &str) -> usize {
    let row = policy.split(';').next();
    POLICIES.iter().position(|known| Some(known.name) == row).unwrap_or(POLICIES.len())
}
