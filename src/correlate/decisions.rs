//! Scores replayed as policies under a budget.

use epikv_analyzer::{Limits, Sample};
use epikv_eviction::{Budget, Lengths, Protect, Recency};

/// What `epikv evict` protects by default: the prompt and the newest tokens.
const PROTECT: Protect = Protect { prompt: true, sinks: 0, recency: Recency::Budget };

/// What the budget means for each trace; `None` where it cannot hold what is protected.
pub(super) fn limits(samples: &[Sample], budget: Budget) -> Vec<Option<Limits>> {
    samples.iter().map(|sample| of_trace(sample, budget)).collect()
}

fn of_trace(sample: &Sample, budget: Budget) -> Option<Limits> {
    let n_prompt = sample.recording.n_prompt;
    let n_generated = Some(sample.recording.token_ids.len() - n_prompt);
    let limits = budget.limits(Lengths { n_prompt, n_generated }, PROTECT).ok()?;
    Some(Limits { n_prompt, budget: limits.tokens(), recency: limits.recency() })
}
