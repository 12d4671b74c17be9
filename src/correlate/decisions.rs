//! Scores replayed as policies under a budget.

use anyhow::Result;
use epikv_analyzer::{AtBudget, Limits, Sample, Settings, decide};
use epikv_eviction::{Budget, Lengths, Protect, Recency};

/// What `epikv evict` protects by default: the prompt and the newest tokens.
const PROTECT: Protect = Protect { prompt: true, sinks: 0, recency: Recency::Budget };

/// Replays the scores of recorded traces under a budget.
pub(super) fn at_budget(samples: &[Sample], budget: Budget, pick: bool, settings: &Settings) -> Result<AtBudget> {
    let limits: Vec<Option<Limits>> = samples.iter().map(|sample| limits(sample, budget)).collect();
    Ok(decide(samples, &budget.to_string(), &limits, pick, settings)?)
}

/// What the budget means for a trace; `None` where it cannot hold what is protected.
fn limits(sample: &Sample, budget: Budget) -> Option<Limits> {
    let n_prompt = sample.recording.n_prompt;
    let n_generated = Some(sample.recording.token_ids.len() - n_prompt);
    let limits = budget.limits(Lengths { n_prompt, n_generated }, PROTECT).ok()?;
    Some(Limits { n_prompt, budget: limits.tokens(), recency: limits.recency() })
}
