//! A policy at work on one cache: called after each step, it frees what does not stay.
//!
//! Frozen scores go into a min-heap as their tokens leave the recency window, and an eviction takes the smallest out:
//! `O(log K)` a token. All kept sets of a cache hold the same tokens then, whatever the scope. Live scores change at each
//! step, so an eviction looks at all of a kept set: `O(K)`. No key or value is moved either way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use epikv_model::cache::{Pos, RowCache, SlotMap};
use epikv_model::sampler::RandomStream;
use epikv_signals::Chunk;
use epikv_stats::{Ties, ordered_key, top_k};

use crate::engine::choice::Choice;
use crate::engine::scores::{Frozen, Scores};
use crate::error::Result;
use crate::policy::budget::Limits;
use crate::policy::select::Protected;
use crate::policy::{Policy, Trigger};

/// A policy with the state of one generation.
#[derive(Debug)]
pub(crate) struct Evictor {
    trigger: Trigger,
    budget: usize,
    n_prompt: usize,
    protected: Protected,
    choice: Choice,
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
    pub(crate) fn new(policy: &Policy, limits: Limits, stream: RandomStream, scores: Scores) -> Self {
        let (budget, n_prompt) = (limits.tokens(), limits.n_prompt());
        Self {
            trigger: policy.trigger,
            budget,
            n_prompt,
            protected: Protected::new(limits),
            choice: Choice::new(policy.select, limits, stream),
            scores,
            queue: Queue::default(),
        }
    }

    /// What it protects.
    pub(crate) fn protected(&self) -> Protected {
        self.protected
    }

    /// Scores the tokens of a pass; `prompt` where they are prompt tokens.
    pub(crate) fn push(&mut self, chunk: &Chunk<'_>, cache: &RowCache, prompt: bool) -> Result<()> {
        if self.trigger == Trigger::Never { Ok(()) } else { self.scores.push(chunk, cache, prompt) }
    }

    /// Chooses what every kept set loses, if the policy's trigger fires.
    ///
    /// # Errors
    /// If the scores cannot be computed.
    pub(crate) fn select(&mut self, cache: &RowCache) -> Result<Option<Cut>> {
        let Some(newest) = cache.last() else { return Ok(None) };
        let n_fed = (newest.0 as usize + 1).saturating_sub(self.n_prompt);
        if !self.trigger.fires(cache.len(0), self.budget, n_fed) {
            return Ok(None);
        }
        let over = cache.len(0) - self.budget;
        let losses = match &mut self.scores {
            Scores::Frozen(scores) => {
                self.queue.fill(scores, self.protected, newest);
                // Never empty before that: the budget holds what is protected.
                let popped = std::iter::from_fn(|| self.queue.heap.pop()).take(over);
                let lost = popped.map(|Reverse((_, pos))| Lost { pos: Pos(pos), score: scores.at(Pos(pos)), place: 0 });
                let lost = lost.collect();
                let kept_score = self.queue.heap.peek().map(|Reverse((_, pos))| scores.at(Pos(*pos)));
                vec![Loss { lost, kept_score }]
            }
            scores => {
                let mut all = scores.of(cache)?;
                self.choice.rank(&mut all, cache, self.protected)?;
                cache.sets().iter().zip(&all).map(|(set, scores)| self.protected.loss(set, scores, over)).collect()
            }
        };
        Ok(Some(Cut { losses, n: over, n_fed }))
    }

    /// Frees the slots of a cut. Moves no data.
    pub(crate) fn apply(&mut self, cut: &Cut, cache: &mut RowCache) {
        for set in 0..cache.sets().len() {
            for lost in &cut.of(set).lost {
                cache.remove(set, lost.pos);
                if let Scores::Live(live) = &mut self.scores {
                    live.remove(set, lost.place);
                }
            }
        }
    }

    /// Chooses and frees; returns how many from each set.
    #[cfg(test)]
    pub(crate) fn evict(&mut self, cache: &mut RowCache) -> usize {
        let Some(cut) = self.select(cache).expect("scores") else { return 0 };
        self.apply(&cut, cache);
        cut.n
    }
}

/// What all kept sets lose at once.
#[derive(Debug)]
pub(crate) struct Cut {
    /// By kept set, or one for all: by frozen scores every set loses the same.
    losses: Vec<Loss>,
    /// Tokens that each set loses.
    pub(crate) n: usize,
    /// Generated tokens fed so far.
    pub(crate) n_fed: usize,
}

impl Cut {
    /// What a set loses.
    pub(crate) fn of(&self, set: usize) -> &Loss {
        &self.losses[set.min(self.losses.len() - 1)]
    }
}

/// What one kept set loses.
#[derive(Debug)]
pub(crate) struct Loss {
    /// With live scores in descending order of places.
    pub(crate) lost: Vec<Lost>,
    /// The lowest score among what stays unprotected.
    pub(crate) kept_score: Option<f32>,
}

/// A token that does not stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) pos: Pos,
    pub(crate) score: f32,
    /// Its place in the order of the set; 0 with frozen scores, which do not need it.
    place: usize,
}

impl Protected {
    /// What a set loses by the scores of the tokens that it holds, in order of positions.
    fn loss(self, set: &SlotMap, scores: &[f32], n: usize) -> Loss {
        let (places, kept_score) = lowest(scores, self, n);
        let lost = |place: usize| Some(Lost { pos: set.nth(place)?, score: scores[place], place });
        Loss { lost: places.into_iter().filter_map(lost).collect(), kept_score }
    }
}

/// Places of the `n` lowest of a set's scores that are not protected, descending, with the lowest score that stays; among
/// equals the older goes.
fn lowest(scores: &[f32], protected: Protected, n: usize) -> (Vec<usize>, Option<f32>) {
    let range = protected.candidates(scores.len());
    let (from, candidates) = (range.start, &scores[range]);
    if n == 1 {
        // The usual case in one look: the least, and the least of the others.
        let (mut least, mut next) = (0, None::<f32>);
        for (i, &score) in candidates.iter().enumerate().skip(1) {
            let beaten = if score < candidates[least] { std::mem::replace(&mut least, i) } else { i };
            next = Some(next.map_or(candidates[beaten], |next| next.min(candidates[beaten])));
        }
        return if candidates.is_empty() { (Vec::new(), None) } else { (vec![from + least], next) };
    }
    let stay = top_k(candidates, candidates.len().saturating_sub(n), Ties::Newer).unwrap_or_default();
    let kept_score = stay.iter().map(|&i| candidates[i]).min_by(f32::total_cmp);
    let mut stay = stay.into_iter().rev().peekable();
    let places = (0..candidates.len()).rev().filter(|&i| stay.next_if_eq(&i).is_none()).take(n).map(|i| from + i);
    (places.collect(), kept_score)
}

#[cfg(test)]
mod tests;
