//! Time stamps: the last step at which each token received much attention.
//!
//! ```text
//! stamp(j) = t           if  p_t(j) >= median over the generated tokens i held of p_t(i),  or j = t
//!            as it was   otherwise
//! ```
//!
//! with `p_t` the newest row of attention, mean over the heads and layers that share the kept set, and the lower of two
//! medians. Prompt tokens are never stamped: they count as oldest.
//!
//! **Differs from `RaaS` in:** tokens and not pages of 16, attention and not its bound by page.
//!
//! Cost: `O(H n)` a layer and token; state: one number a token and kept set.
//!
//! # References
//! `RaaS` (arXiv 2502.11147), section 3.2, with the threshold by rank (half are refreshed) of its code; the rule for tokens is
//! `RaaSEviction` of `EpiKV`'s authors.

use epikv_model::cache::{Pos, RowCache};
use epikv_model::taps::ProbePlan;

use super::attention_sum::{AttentionRows, AttentionSum};
use super::ordered::Ordered;
use super::row::ScoreRow;
use super::score::{Need, Score, ScoreSpec, Step};
use crate::error::Result;

pub(crate) static SPEC: ScoreSpec = ScoreSpec {
    name: "raas",
    doc: "Time at which the token last received at least the median of the newest row of attention",
    source: "RaaS (arXiv 2502.11147), section 3.2; the rule for tokens is `RaaSEviction` of EpiKV's authors",
    differs: "tokens, not pages of 16, and attention, not its bound by page",
    needs: &[Need::Attention],
    ..ScoreSpec::BLANK
};

/// The row of the table.
pub(crate) const ROW: ScoreRow = ScoreRow::plain(&SPEC, |setup| Ok(Box::new(Stamps::new(setup.n_layers))));

/// The stamps of one generation.
#[derive(Debug, Clone)]
pub struct Stamps {
    newest: AttentionSum,
    /// By kept set: the position of the query that last refreshed the token, -1 for the prompt.
    times: Vec<Ordered>,
    /// The first generated token.
    first: Option<Pos>,
}

impl Stamps {
    /// Nothing seen yet, for a model of `n_layers`.
    pub fn new(n_layers: usize) -> Self {
        Self { newest: AttentionSum::new(AttentionRows::Newest, n_layers), times: Vec::new(), first: None }
    }
}

impl Score for Stamps {
    fn spec(&self) -> &'static ScoreSpec {
        &SPEC
    }

    fn plan(&self) -> ProbePlan {
        self.newest.plan()
    }

    fn observe(&mut self, step: &Step<'_>) -> Result<()> {
        self.newest.observe(step)?;
        let sets = step.cache.sets();
        self.times.resize(sets.len(), Ordered::default());
        self.times.iter_mut().zip(sets).for_each(|(stamps, set)| stamps.grow(set, -1.0));
        let Some(now) = step.cache.last().filter(|_| !step.prompt) else { return Ok(()) };
        let first = *self.first.get_or_insert(Pos((now.0 + 1).saturating_sub(step.chunk.len() as u32)));
        for (at, stamps) in self.times.iter_mut().enumerate() {
            // Positions ascend, so the generated tokens are the last.
            let from = stamps.positions().partition_point(|pos| *pos < first);
            refresh(&mut stamps.values_mut()[from..], &self.newest.of(at)[from..], now.0 as f32);
        }
        Ok(())
    }

    fn scores(&self, _: &RowCache) -> Result<Vec<Vec<f32>>> {
        Ok(self.times.iter().map(|stamps| stamps.values().to_vec()).collect())
    }

    fn evicted(&mut self, set: usize, pos: Pos) {
        self.times[set].remove(pos);
        self.newest.evicted(set, pos);
    }

    fn by_single_tokens(&self) -> bool {
        true
    }
}

/// Stamps the tokens that get at least the median of the weights, and the newest.
fn refresh(stamps: &mut [f32], weights: &[f32], now: f32) {
    let mut ordered = weights.to_vec();
    ordered.sort_unstable_by(f32::total_cmp);
    let Some(&median) = ordered.get(ordered.len().saturating_sub(1) / 2) else { return };
    for (stamp, weight) in stamps.iter_mut().zip(weights) {
        if *weight >= median {
            *stamp = now;
        }
    }
    if let Some(newest) = stamps.last_mut() {
        *newest = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_are_refreshed_and_the_newest() {
        let mut stamps = [1.0, 2.0, 3.0, -1.0];
        refresh(&mut stamps, &[0.4, 0.1, 0.3, 0.2], 9.0);
        assert_eq!(stamps.to_vec(), [9.0, 2.0, 9.0, 9.0], "the lower median of four is the second");
        refresh(&mut stamps[..3], &[0.2, 0.2, 0.2], 10.0);
        assert_eq!(stamps[..3].to_vec(), [10.0; 3], "all are the median");
        refresh(&mut [], &[], 1.0);
    }
}
