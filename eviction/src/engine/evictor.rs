//! Applies a policy to one cache: called after each step, it frees the slots of evicted tokens.
//!
//! Frozen scores go into a min-heap as their tokens leave the recency window, and an eviction takes the smallest out:
//! `O(log K)` a token. Kept sets that share their numbers and have equal budgets share a heap and hold the same tokens. Live
//! scores change at each step, so an eviction looks at all of a kept set: `O(K)`. No key or value is moved either way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use epikv_model::cache::{Pos, RowCache, SlotMap};
use epikv_model::plan::ReadPlan;
use epikv_model::sampler::RandomStream;
use epikv_signals::{Chunk, Frozen, Score, Step};
use epikv_stats::{Ties, ordered_key, top_k};

use crate::engine::choice::Choice;
use crate::error::{Error, Result};
use crate::policy::allocate::{Allocate, Sets};
use crate::policy::limits::Limits;
use crate::policy::protect::Protected;
use crate::policy::read::Held;
use crate::policy::trigger::{self, TriggerState};
use crate::policy::{Policy, Read};

/// A policy with the state of one generation, for a program that takes the steps itself.
///
/// After each pass it scores what was fed ([`Evictor::push`]) and frees what does not stay ([`Evictor::evict`]).
/// [`decode_all`](crate::decode_all) does both.
#[derive(Debug)]
pub struct Evictor {
    has_budget: bool,
    read: Read,
    pub(crate) trigger: Box<dyn TriggerState>,
    allocate: Allocate,
    limits: Limits,
    choice: Choice,
    score: Box<dyn Score>,
    /// For frozen scores: one for all kept sets that hold the same tokens, or one a set.
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
    fn removal(&mut self, numbers: &Frozen, set: usize, (protected, newest): (Protected, Pos), n: usize) -> SetRemoval {
        let score = |pos: Pos| numbers.at(set, pos);
        self.fill(score, protected, newest);
        let lowest = std::iter::from_fn(|| self.heap.pop()).take(n);
        let removed = lowest.map(|Reverse((_, pos))| Removed { pos: Pos(pos), score: score(Pos(pos)) }).collect();
        SetRemoval { removed, kept_score: self.heap.peek().map(|Reverse((_, pos))| score(Pos(*pos))) }
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
    /// Nothing fed yet. `score` is that of the policy, started for the model; its plan says what a pass must record.
    pub fn new(policy: &Policy, limits: &Limits, stream: RandomStream, score: Box<dyn Score>) -> Self {
        Self {
            has_budget: policy.has_budget(),
            read: policy.read,
            trigger: policy.trigger.start(),
            allocate: policy.allocate,
            limits: limits.clone(),
            choice: Choice::new(policy.select, stream),
            score,
            queues: Vec::new(),
        }
    }

    /// What each kept set may hold, as of the last eviction, and what is protected.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Scores the tokens of a pass; `prompt` where they are prompt tokens.
    ///
    /// # Errors
    /// If the pass did not record what the score needs.
    pub fn push(&mut self, chunk: &Chunk<'_>, cache: &RowCache, prompt: bool) -> Result<()> {
        if self.has_budget { Ok(self.score.observe(&Step { chunk, cache, prompt })?) } else { Ok(()) }
    }

    /// What the next step reads; `None` for everything.
    ///
    /// # Errors
    /// If the scores cannot be computed.
    pub(crate) fn read_plan(&self, cache: &RowCache) -> Result<Option<ReadPlan>> {
        if self.read.is_all() {
            return Ok(None);
        }
        let scores = checked_scores(&*self.score, cache)?;
        Ok(Some(self.read.plan(&Held { cache, scores: &scores, limits: &self.limits })))
    }

    /// Chooses what every kept set loses after a step that fed the tokens `ids`, if the policy's trigger is due.
    ///
    /// # Errors
    /// If the scores cannot be computed.
    pub(crate) fn select(&mut self, cache: &RowCache, ids: &[u32]) -> Result<Option<Cut>> {
        let Some(newest) = cache.last() else { return Ok(None) };
        let n_fed = newest.0 as usize + 1;
        let n_generated = n_fed.saturating_sub(self.limits.n_prompt());
        let held: Vec<usize> = (0..cache.sets().len()).map(|set| cache.len(set)).collect();
        let is_reading = n_fed < self.limits.n_prompt();
        let step = trigger::Step { ids, is_reading, n_generated, held: &held, limits: &self.limits };
        if !self.trigger.due(&step) || is_reading || step.most_over() == 0 {
            return Ok(None);
        }
        let sets = if self.choice.by_score() && self.score.frozen().is_some() {
            self.divide_by_score(cache, None)?;
            self.lowest_frozen(&held, newest)
        } else {
            let mut all = checked_scores(&*self.score, cache)?;
            self.divide_by_score(cache, Some(&all))?;
            self.choice.rank(&mut all, cache, &self.limits)?;
            let protected = self.limits.protected();
            let over = |set: usize| held[set].saturating_sub(self.limits.of(set));
            let sets = cache.sets().iter().zip(&all).enumerate();
            sets.map(|(at, (set, scores))| protected.removal(set, scores, over(at))).collect()
        };
        Ok(Some(Cut { sets, n_generated }))
    }

    /// Divides the budget again, where the division looks at scores.
    fn divide_by_score(&mut self, cache: &RowCache, scores: Option<&[Vec<f32>]>) -> Result<()> {
        if !self.allocate.is_by_score() {
            return Ok(());
        }
        let all = scores.map_or_else(|| checked_scores(&*self.score, cache), |all| Ok(all.to_vec()))?;
        let protected = self.limits.protected();
        let candidates: Vec<Vec<f32>> = all.iter().map(|own| own[protected.candidates(own.len())].to_vec()).collect();
        self.limits = self.limits.divided(self.allocate, sets_of(cache), Some(&candidates))?;
        Ok(())
    }

    /// What the kept sets lose by frozen scores.
    fn lowest_frozen(&mut self, held: &[usize], newest: Pos) -> Vec<SetRemoval> {
        let Some(numbers) = self.score.frozen() else { return Vec::new() };
        let is_one = numbers.is_shared() && self.allocate.is_even();
        self.queues.resize_with(if is_one { 1 } else { held.len() }, Queue::default);
        let (limits, protected) = (&self.limits, self.limits.protected());
        let removal = |(set, queue): (usize, &mut Queue)| {
            queue.removal(numbers, set, (protected, newest), held[set].saturating_sub(limits.of(set)))
        };
        self.queues.iter_mut().enumerate().map(removal).collect()
    }

    /// Frees the slots of a cut. Moves no data.
    pub(crate) fn apply(&mut self, cut: &Cut, cache: &mut RowCache) {
        for set in 0..cache.sets().len() {
            for removed in &cut.of(set).removed {
                cache.remove(set, removed.pos);
                self.score.evicted(set, removed.pos);
            }
        }
    }

    /// The score, with what it has observed.
    pub fn score(&self) -> &dyn Score {
        &*self.score
    }

    /// Frees what does not stay after a step that fed the tokens `ids`, if the policy's trigger is due; returns how many from
    /// all sets together.
    ///
    /// # Errors
    /// If the scores cannot be computed.
    pub fn evict(&mut self, cache: &mut RowCache, ids: &[u32]) -> Result<usize> {
        let Some(cut) = self.select(cache, ids)? else { return Ok(0) };
        self.apply(&cut, cache);
        Ok(cut.n_removed(cache.sets().len()))
    }

    /// Forgets a token that the caller removed from a kept set.
    pub fn forget(&mut self, set: usize, pos: Pos) {
        self.score.evicted(set, pos);
    }
}

/// The kept sets of a cache, for a division of the budget.
fn sets_of(cache: &RowCache) -> Sets {
    Sets { scope: cache.scope(), n_layers: cache.n_layers(), n_kv_heads: cache.n_kv_heads() }
}

/// What the kept sets lose at once.
#[derive(Debug)]
pub(crate) struct Cut {
    /// By kept set, or one for all where every set loses the same.
    sets: Vec<SetRemoval>,
    /// Generated tokens fed so far.
    pub(crate) n_generated: usize,
}

impl Cut {
    /// What a set loses.
    pub(crate) fn of(&self, set: usize) -> &SetRemoval {
        &self.sets[set.min(self.sets.len() - 1)]
    }

    /// Tokens that so many sets lose together.
    pub(crate) fn n_removed(&self, n_sets: usize) -> usize {
        (0..n_sets).map(|set| self.of(set).removed.len()).sum()
    }
}

/// What one kept set loses.
#[derive(Debug)]
pub(crate) struct SetRemoval {
    pub(crate) removed: Vec<Removed>,
    /// The lowest score among what stays unprotected.
    pub(crate) kept_score: Option<f32>,
}

/// A token that does not stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removed {
    pub(crate) pos: Pos,
    pub(crate) score: f32,
}

impl Protected {
    /// What a set loses by the scores of the tokens that it holds, in order of positions.
    fn removal(self, set: &SlotMap, scores: &[f32], n: usize) -> SetRemoval {
        let (places, kept_score) = lowest(scores, self, n);
        let removed = |place: usize| Some(Removed { pos: set.nth(place)?, score: scores[place] });
        SetRemoval { removed: places.into_iter().filter_map(removed).collect(), kept_score }
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
mod kept;
#[cfg(test)]
mod tests;
