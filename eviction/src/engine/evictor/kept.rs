//! The plain selection that the fast ones are tested against.

use epikv_model::cache::Pos;
use epikv_stats::{Ties, top_k};

use crate::policy::limits::Limits;
use crate::policy::protect::Protected;
use crate::policy::{Protect, Recency};

/// The positions that stay of `held`, which ascends: the protected ones and, as far as the budget reaches, the selected.
pub(crate) fn kept(held: &[Pos], score: impl Fn(Pos) -> f32, protected: Protected, budget: usize) -> Option<Vec<Pos>> {
    let newest = *held.last()?;
    let (mut stay, others): (Vec<Pos>, Vec<Pos>) = held.iter().partition(|&&pos| protected.contains(pos, newest));
    let scores: Vec<f32> = others.iter().map(|&pos| score(pos)).collect();
    let chosen = top_k(&scores, budget.saturating_sub(stay.len()), Ties::Newer)?;
    stay.extend(chosen.into_iter().map(|i| others[i]));
    stay.sort_unstable();
    Some(stay)
}

fn limits(tokens: usize, n_prompt: usize) -> Limits {
    let usual = Protect { prompt: true, sinks: 0, recency: Recency::Budget };
    Limits::new(tokens, n_prompt, usual).expect("feasible")
}

fn stays(held: &[u32], scores: &[f32], limits: &Limits) -> Option<Vec<u32>> {
    let held: Vec<Pos> = held.iter().map(|&p| Pos(p)).collect();
    let kept = kept(&held, |pos| scores[pos.0 as usize], limits.protected(), limits.tokens())?;
    Some(kept.iter().map(|p| p.0).collect())
}

#[test]
fn the_best_of_what_is_not_protected_stay() {
    // Budget 8: prompt 0 and 1, recency 2 (9 and 10), so four of 2..=8.
    let scores = [0.0, 0.0, 5.0, 1.0, 4.0, 2.0, 3.0, 0.0, 9.0, -1.0, -1.0];
    let all: Vec<u32> = (0..=10).collect();
    assert_eq!(stays(&all, &scores, &limits(8, 2)), Some(vec![0, 1, 2, 4, 6, 8, 9, 10]));
}

#[test]
fn among_equals_the_newer_stay() {
    let held = [0, 1, 3, 4, 6, 7, 8, 9, 10];
    assert_eq!(stays(&held, &[1.0; 11], &limits(8, 2)), Some(vec![0, 1, 4, 6, 7, 8, 9, 10]));
}
