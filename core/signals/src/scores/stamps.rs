//! When each token was last looked at: the attention that refreshes a token, reduced to a time.
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
use crate::error::Result;
use crate::taps::Chunk;

/// The stamps of one generation.
#[derive(Debug, Clone)]
pub struct Stamps {
    newest: AttentionSum,
    /// By kept set, in order of positions: the position of the query that last refreshed the token, -1 for the prompt.
    times: Vec<Vec<f32>>,
    /// The first generated token.
    first: Option<Pos>,
}

impl Stamps {
    /// Nothing seen yet, for a model of `n_layers`.
    pub fn new(n_layers: usize) -> Self {
        Self { newest: AttentionSum::new(AttentionRows::Newest, n_layers), times: Vec::new(), first: None }
    }

    /// What the forward pass must record.
    pub fn plan(n_layers: usize) -> ProbePlan {
        AttentionSum::plan(AttentionRows::Newest, n_layers)
    }

    /// Takes what the newest token of a pass looks at.
    ///
    /// # Errors
    /// If the pass did not observe the attention of this cache.
    pub fn push(&mut self, chunk: &Chunk<'_>, cache: &RowCache, prompt: bool) -> Result<()> {
        self.newest.push(chunk, cache, prompt)?;
        let sets = cache.sets();
        self.times.resize(sets.len(), Vec::new());
        self.times.iter_mut().zip(sets).for_each(|(stamps, set)| stamps.resize(set.len(), -1.0));
        let Some(now) = cache.last().filter(|_| !prompt) else { return Ok(()) };
        let first = *self.first.get_or_insert(Pos((now.0 + 1).saturating_sub(chunk.len() as u32)));
        for (at, (stamps, set)) in self.times.iter_mut().zip(sets).enumerate() {
            // Positions ascend, so the generated tokens are the last.
            let n_generated = set.positions().rev().take_while(|pos| *pos >= first).count();
            let from = set.len() - n_generated;
            refresh(&mut stamps[from..], &self.newest.of(at)[from..], now.0 as f32);
        }
        Ok(())
    }

    /// The stamps of a kept set, in order of positions.
    pub fn of(&self, set: usize) -> &[f32] {
        self.times.get(set).map_or(&[], Vec::as_slice)
    }

    /// Forgets the token at a place in the order of a kept set, which was evicted.
    pub fn remove(&mut self, set: usize, place: usize) {
        self.times[set].remove(place);
        self.newest.remove(set, place);
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
