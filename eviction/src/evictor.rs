//! A policy at work on one cache: called after each step, it frees what does not stay.
//!
//! Frozen scores go into a min-heap as their tokens leave the recency window, and an eviction takes the smallest out:
//! `O(log K)` a token. All kept sets of a cache hold the same tokens then, whatever the scope. Live scores change at each
//! step, so an eviction looks at all of a kept set: `O(K)`. No key or value is moved either way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use epikv_model::cache::{Pos, RowCache};
use epikv_signals::{AttentionSum, Chunk};
use epikv_stats::{Ties, ordered_key, top_k};

use crate::budget::Limits;
use crate::error::Result;
use crate::policy::{Policy, Trigger};
use crate::scores::{Frozen, Scores};
use crate::select::Protected;

/// A policy with the state of one generation.
#[derive(Debug)]
pub(crate) struct Evictor {
    trigger: Trigger,
    budget: usize,
    n_prompt: usize,
    protected: Protected,
    pub(crate) scores: Scores,
    queue: Queue,
}

/// Tokens that may be evicted by frozen scores.
#[derive(Debug, Default)]
struct Queue {
    /// The lowest score first; among equals the older token, so that the newer stays.
    heap: BinaryHeap<Reverse<(u32, u32)>>,
    /// The first position that was not yet looked at.
    next: u32,
}

impl Queue {
    /// Takes in the tokens that are no longer protected when `newest` is the latest position fed.
    fn fill(&mut self, scores: &Frozen, protected: Protected, newest: Pos) {
        let end = (newest.0 + 1).saturating_sub(protected.recency);
        self.next = self.next.max(protected.n_first);
        while self.next < end {
            self.heap.push(Reverse((ordered_key(scores.at(Pos(self.next))), self.next)));
            self.next += 1;
        }
    }
}

impl Evictor {
    pub(crate) fn new(policy: &Policy, limits: Limits, scores: Scores) -> Self {
        let protected = Protected::new(limits);
        let (budget, n_prompt) = (limits.tokens(), limits.n_prompt());
        Self { trigger: policy.trigger, budget, n_prompt, protected, scores, queue: Queue::default() }
    }

    /// What it protects.
    pub(crate) fn protected(&self) -> Protected {
        self.protected
    }

    /// Scores the tokens of a pass; `prompt` where they are prompt tokens.
    pub(crate) fn push(&mut self, chunk: &Chunk<'_>, cache: &RowCache, prompt: bool) -> Result<()> {
        if self.trigger == Trigger::Never { Ok(()) } else { self.scores.push(chunk, cache, prompt) }
    }

    /// Evicts from every kept set if the policy's trigger fires; returns how many from each.
    pub(crate) fn evict(&mut self, cache: &mut RowCache) -> usize {
        let Some(newest) = cache.last() else { return 0 };
        let n_fed = (newest.0 as usize + 1).saturating_sub(self.n_prompt);
        if !self.trigger.fires(cache.len(0), self.budget, n_fed) {
            return 0;
        }
        let over = cache.len(0) - self.budget;
        match &mut self.scores {
            Scores::Frozen(scores) => {
                self.queue.fill(scores, self.protected, newest);
                for _ in 0..over {
                    // Never empty: the budget holds what is protected.
                    let Some(Reverse((_, pos))) = self.queue.heap.pop() else { break };
                    for set in 0..cache.sets().len() {
                        cache.remove(set, Pos(pos));
                    }
                }
            }
            Scores::Live(sums) => {
                for set in 0..cache.sets().len() {
                    for place in lowest(sums, set, self.protected, over) {
                        if let Some(pos) = cache.sets()[set].nth(place) {
                            cache.remove(set, pos);
                        }
                        sums.remove(set, place);
                    }
                }
            }
        }
        over
    }
}

/// Places in a kept set of the `n` lowest sums that are not protected, descending; among equals the older.
fn lowest(sums: &AttentionSum, set: usize, protected: Protected, n: usize) -> Vec<usize> {
    let sums = sums.of(set);
    // All protected tokens are held, so they are the first and the last of the set.
    let from = (protected.n_first as usize).min(sums.len());
    let to = sums.len().saturating_sub(protected.recency as usize).max(from);
    let candidates = &sums[from..to];
    if n == 1 {
        let mut least = 0;
        for (i, sum) in candidates.iter().enumerate() {
            if *sum < candidates[least] {
                least = i;
            }
        }
        return if candidates.is_empty() { Vec::new() } else { vec![from + least] };
    }
    let stay = top_k(candidates, candidates.len().saturating_sub(n), Ties::Newer).unwrap_or_default();
    let mut stay = stay.into_iter().rev().peekable();
    (0..candidates.len()).rev().filter(|&i| stay.next_if_eq(&i).is_none()).take(n).map(|i| from + i).collect()
}

#[cfg(test)]
mod tests;
