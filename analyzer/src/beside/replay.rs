//! The area under the ROC curve at decision time: at each eviction, over the tokens that could be evicted.
//!
//! A coefficient over a whole trace compares tokens that are never candidates at the same time. Here a policy is
//! replayed on the trace: the token with the lowest score is evicted whenever a layer holds more than `K` tokens.
//! Prompt and the newest `R` tokens are protected. Just before each eviction
//!
//! ```text
//! AUC = chance that an important candidate scores higher than an unimportant one, over the live candidates with a label
//! ```
//!
//! The value of a trace is the mean over its evictions; at most [`MAX_MEASURED`] of them, evenly spread, are measured. A
//! token without a score counts as lowest. Ties are evicted oldest first, as `epikv evict` does.
//!
//! Scores must be frozen. A score that is made again at each step, such as accumulated attention, has to be given as it was
//! known at some age (`h2o_attn@age=64`): at birth a token has received attention from itself alone.
//!
//! Cost: `O(n log K)` and `O(K)` a measured eviction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use epikv_stats::{BinaryRanks, RankScratch, ordered_key};

/// Evictions of a trace that are measured at most.
pub const MAX_MEASURED: usize = 64;

/// Where a policy is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of the prompt, all protected.
    pub n_prompt: usize,
    /// Tokens that a layer may keep, prompt included.
    pub budget: usize,
    /// Newest tokens that are protected.
    pub recency: usize,
}

/// What a replay gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decisions {
    /// Mean AUC over the measured evictions at which both labels were among the candidates.
    pub auc: f64,
    /// Evictions of the replay.
    pub n_evictions: usize,
    /// Evictions that count in `auc`.
    pub n_measured: usize,
}

/// Replays a trace under a frozen score, `[n]`, with the labels of its tokens, `[n]`, null where there is none.
///
/// Undefined (`None`) if nothing is evicted, or both labels never stand among the candidates.
///
/// # Panics
/// If the lengths differ.
pub fn replay(scores: &[Option<f32>], labels: &[Option<bool>], limits: Limits) -> Option<Decisions> {
    assert_eq!(scores.len(), labels.len(), "one label a token");
    let n_evictions = scores.len().saturating_sub(limits.budget);
    let stride = n_evictions.div_ceil(MAX_MEASURED).max(1);
    let (mut sum, mut n_measured) = (0.0, 0);
    let (mut signal, mut important, mut scratch) = (Vec::new(), Vec::new(), RankScratch::default());
    run(scores, limits, |evicted, candidates| {
        if evicted % stride != 0 {
            return;
        }
        signal.clear();
        important.clear();
        for &Reverse((_, pos)) in candidates {
            if let Some(one) = labels[pos] {
                signal.push(score(scores, pos));
                important.push(one);
            }
        }
        // The counts are integers, so the order of the heap changes nothing.
        let ranks = BinaryRanks::from_f32(&signal, &important, &mut scratch);
        if let Some(auc) = ranks.and_then(|ranks| ranks.auc()) {
            sum += auc;
            n_measured += 1;
        }
    })?;
    (n_measured > 0).then(|| Decisions { auc: sum / n_measured as f64, n_evictions, n_measured })
}

/// The unprotected tokens that are still held at the end of a trace under a frozen score, `[n]`, ascending.
///
/// `None` where the budget does not hold what is protected, or nothing is evicted.
pub fn survivors(scores: &[Option<f32>], limits: Limits) -> Option<Vec<usize>> {
    if scores.len() <= limits.budget {
        return None;
    }
    let mut kept: Vec<usize> = run(scores, limits, |_, _| ())?.into_iter().map(|Reverse((_, pos))| pos).collect();
    kept.sort_unstable();
    Some(kept)
}

/// Tokens that may go, that with the lowest score first, of equal ones the oldest.
type Candidates = BinaryHeap<Reverse<(u32, usize)>>;

/// Replays a trace and gives the candidates at its end; `at_eviction` sees the number of evictions so far and the candidates.
/// `None` where there is no candidate to evict.
fn run(scores: &[Option<f32>], limits: Limits, mut at_eviction: impl FnMut(usize, &Candidates)) -> Option<Candidates> {
    let Limits { n_prompt, budget, recency } = limits;
    let mut candidates = Candidates::new();
    let (mut held, mut next, mut evicted) = (0, n_prompt, 0);
    for newest in 0..scores.len() {
        held += 1;
        while next < (newest + 1).saturating_sub(recency) {
            candidates.push(Reverse((ordered_key(score(scores, next)), next)));
            next += 1;
        }
        if held > budget {
            at_eviction(evicted, &candidates);
            candidates.pop()?; // none where the budget does not hold what is protected
            held -= 1;
            evicted += 1;
        }
    }
    Some(candidates)
}

/// The score of a token; lowest where there is none.
fn score(scores: &[Option<f32>], pos: usize) -> f32 {
    scores[pos].filter(|s| !s.is_nan()).unwrap_or(f32::NEG_INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: a list of live tokens, searched again at each step; with what is held unprotected at the end.
    fn slow(scores: &[Option<f32>], labels: &[Option<bool>], limits: Limits) -> Option<(f64, Vec<usize>)> {
        let mut live: Vec<usize> = Vec::new();
        let mut aucs = Vec::new();
        for newest in 0..scores.len() {
            live.push(newest);
            if live.len() <= limits.budget {
                continue;
            }
            let may_go = |pos: usize| pos >= limits.n_prompt && pos + limits.recency <= newest;
            let candidates: Vec<usize> = live.iter().copied().filter(|&pos| may_go(pos)).collect();
            let (mut wins, mut pairs) = (0.0, 0.0);
            for &a in candidates.iter().filter(|&&pos| labels[pos] == Some(true)) {
                for &b in candidates.iter().filter(|&&pos| labels[pos] == Some(false)) {
                    let (a, b) = (score(scores, a), score(scores, b));
                    wins += match a.partial_cmp(&b) {
                        Some(std::cmp::Ordering::Greater) => 1.0,
                        Some(std::cmp::Ordering::Equal) => 0.5,
                        _ => 0.0,
                    };
                    pairs += 1.0;
                }
            }
            if pairs > 0.0 {
                aucs.push(wins / pairs);
            }
            let worst = candidates.into_iter().reduce(|a, b| if score(scores, b) < score(scores, a) { b } else { a });
            live.retain(|pos| Some(*pos) != worst);
        }
        live.retain(|&pos| pos >= limits.n_prompt && pos + limits.recency < scores.len());
        Some((epikv_stats::moments::mean(&aucs)?, live))
    }

    #[test]
    fn equals_the_definition() {
        let number = |i: usize, m: usize| (i * 7919 + 31) % m;
        let scores: Vec<Option<f32>> = (0..90).map(|i| (i % 11 != 3).then(|| number(i, 17) as f32)).collect();
        let labels: Vec<Option<bool>> = (0..90).map(|i| (i >= 10 && i % 7 != 2).then(|| number(i, 5) < 2)).collect();
        for (budget, recency) in [(30, 5), (40, 0), (60, 20), (88, 3)] {
            let limits = Limits { n_prompt: 10, budget, recency };
            let found = replay(&scores, &labels, limits).expect("evictions");
            let (auc, live) = slow(&scores, &labels, limits).expect("pairs");
            assert!((found.auc - auc).abs() < 1e-12, "{limits:?}");
            assert_eq!(survivors(&scores, limits), Some(live), "{limits:?}");
            assert_eq!(found.n_evictions, 90 - budget);
        }
    }

    #[test]
    fn without_an_eviction_or_a_label_there_is_no_value() {
        let scores = vec![Some(1.0); 20];
        let limits = |budget| Limits { n_prompt: 4, budget, recency: 2 };
        assert_eq!(replay(&scores, &[Some(true); 20], limits(20)), None);
        assert_eq!(replay(&scores, &[Some(true); 20], limits(10)), None, "one label");
        assert_eq!(replay(&scores, &[None; 20], limits(10)), None);
        assert_eq!(replay(&scores, &[Some(true); 20], limits(4)), None, "no room for what is protected");
        assert_eq!((survivors(&scores, limits(20)), survivors(&scores, limits(4))), (None, None));
    }

    #[test]
    fn long_traces_are_sampled_evenly() {
        let scores: Vec<Option<f32>> = (0..1000).map(|i| Some((i % 97) as f32)).collect();
        let labels: Vec<Option<bool>> = (0..1000).map(|i| Some(i % 2 == 0)).collect();
        let found = replay(&scores, &labels, Limits { n_prompt: 0, budget: 100, recency: 10 }).expect("evictions");
        assert_eq!((found.n_evictions, found.n_measured), (900, 60));
    }
}
