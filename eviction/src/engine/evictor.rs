//! A policy at work on one cache: called after each step, it frees what does not stay.
//!
//! Frozen scores go into a min-heap as their tokens leave the recency window, and an eviction takes the smallest out:
//! `O(log K)` a token. Kept sets that share their numbers share a heap and hold the same tokens, whatever the scope. Live
//! scores change at each step, so an eviction looks at all of a kept set: `O(K)`. No key or value is moved either way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use epikv_model::cache::{Pos, RowCache, SlotMap};
use epikv_model::sampler::RandomStream;
use epikv_signals::{Chunk, Frozen, Score, Step};
use epikv_stats::{Ties, ordered_key, top_k};

use crate::engine::choice::Choice;
use crate::error::{Error, Result};
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
    pub(crate) score: Box<dyn Score>,
    /// For frozen scores: one for all kept sets that share their numbers, or one a set.
    queues: Vec<Queue>,
}

/// Tokens of a kept set that may be evicted by frozen scores.
#[derive(Debug, Default)]
struct Queue {
    /// The lowest score first; among equals the older token, so that the newer stays.
    heap: BinaryHeap<Reverse<(u32, u32)>>,
    /// The first position that was not yet looked at.
    next: u32,
}

impl Queue {
    /// Takes in the tokens that are no longer protected when `newest` is the latest position fed.
    fn fill(&mut self, score: impl Fn(Pos) -> f32, protected: Protected, newest: Pos) {
        let end = (newest.0 + 1).saturating_sub(protected.recency);
        self.next = self.next.max(protected.n_first);
        while self.next < end {
            self.heap.push(Reverse((ordered_key(score(Pos(self.next))), self.next)));
            self.next += 1;
        }
    }

    /// What a set loses: the lowest. They are there, since the budget holds what is protected.
    fn loss(&mut self, numbers: &Frozen, set: usize, (protected, newest): (Protected, Pos), n: usize) -> Loss {
        let score = |pos: Pos| numbers.at(set, pos);
        self.fill(score, protected, newest);
        let lost = std::iter::from_fn(|| self.heap.pop()).take(n);
        let lost = lost.map(|Reverse((_, pos))| Lost { pos: Pos(pos), score: score(Pos(pos)) }).collect();
        Loss { lost, kept_score: self.heap.peek().map(|Reverse((_, pos))| score(Pos(*pos))) }
    }
}

/// The scores of the tokens that each kept set holds, one number a token.
///
/// # Errors
/// If they cannot be computed, or do not fit the cache: one that comes from outside may have made a mistake.
pub(crate) fn checked_scores(score: &dyn Score, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
    let all = score.scores(cache)?;
    let (expected, got) = (cache.sets().iter().map(SlotMap::len), all.iter().map(Vec::len));
    if !expected.clone().eq(got.clone()) {
        return Err(Error::ScoreShape { expected: expected.collect(), got: got.collect() });
    }
    Ok(all)
}

impl Evictor {
    pub(crate) fn new(policy: &Policy, limits: Limits, stream: RandomStream, score: Box<dyn Score>) -> Self {
        let (budget, n_prompt) = (limits.tokens(), limits.n_prompt());
        Self {
            trigger: policy.trigger,
            budget,
            n_prompt,
            protected: Protected::new(limits),
            choice: Choice::new(policy.select, limits, stream),
            score,
            queues: Vec::new(),
        }
    }

    /// What it protects.
    pub(crate) fn protected(&self) -> Protected {
        self.protected
    }

    /// Scores the tokens of a pass; `prompt` where they are prompt tokens.
    pub(crate) fn push(&mut self, chunk: &Chunk<'_>, cache: &RowCache, prompt: bool) -> Result<()> {
        if self.trigger == Trigger::Never { Ok(()) } else { Ok(self.score.observe(&Step { chunk, cache, prompt })?) }
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
        let losses = if let Some(numbers) = self.score.frozen() {
            let n_queues = if numbers.is_shared() { 1 } else { cache.sets().len() };
            self.queues.resize_with(n_queues, Queue::default);
            let queues = self.queues.iter_mut().enumerate();
            queues.map(|(set, queue)| queue.loss(numbers, set, (self.protected, newest), over)).collect()
        } else {
            let mut all = checked_scores(&*self.score, cache)?;
            self.choice.rank(&mut all, cache, self.protected)?;
            cache.sets().iter().zip(&all).map(|(set, scores)| self.protected.loss(set, scores, over)).collect()
        };
        Ok(Some(Cut { losses, n: over, n_fed }))
    }

    /// Frees the slots of a cut. Moves no data.
    pub(crate) fn apply(&mut self, cut: &Cut, cache: &mut RowCache) {
        for set in 0..cache.sets().len() {
            for lost in &cut.of(set).lost {
                cache.remove(set, lost.pos);
                self.score.evicted(set, lost.pos);
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
    /// By kept set, or one for all: by frozen scores that all sets share, every set loses the same.
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
    pub(crate) lost: Vec<Lost>,
    /// The lowest score among what stays unprotected.
    pub(crate) kept_score: Option<f32>,
}

/// A token that does not stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) pos: Pos,
    pub(crate) score: f32,
}

impl Protected {
    /// What a set loses by the scores of the tokens that it holds, in order of positions.
    fn loss(self, set: &SlotMap, scores: &[f32], n: usize) -> Loss {
        let (places, kept_score) = lowest(scores, self, n);
        let lost = |place: usize| Some(Lost { pos: set.nth(place)?, score: scores[place] });
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
