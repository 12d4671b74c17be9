//! Two windows at once. A value that is stated twice is missed when only one place is hidden at a time.
//!
//! Pairs are drawn among the windows of a trace that leave the answer as it is and do not overlap. A pair that flips shows a
//! dependence that no single window has.

use std::collections::BTreeSet;

use epikv_model::sampler::{RandomStream, stream_number};
use epikv_schemas::{LabelPair, LabelWindow};

use crate::error::Result;
use crate::run::job::Job;
use crate::run::plan::{Contexts, Plan};
use crate::run::regenerations::Regenerations;
use crate::run::rows::{Judged, judge};

/// Draws for each pair that is wanted, before a trace counts as having no more; pairs that overlap are drawn in vain.
const DRAWS_A_PAIR: usize = 50;

/// Number of the random stream of pairs, apart from those of fillers, which count tokens.
const STREAM: u32 = u32::MAX;

/// Withholds pairs of windows. One row a pair.
pub(crate) fn pairs(
    run: &mut Regenerations<'_>,
    contexts: &Contexts<'_>,
    jobs: &[Job<'_>],
    plans: &[Plan],
    windows: &[LabelWindow],
) -> Result<Vec<LabelPair>> {
    let mut quiet: Vec<Vec<&Plan>> = vec![Vec::new(); jobs.len()];
    for (plan, _) in plans.iter().zip(windows).filter(|(_, window)| window.flipped == Some(false)) {
        quiet[plan.job].push(plan);
    }
    let mut drawn: Vec<(&Plan, &Plan)> = Vec::new();
    for (job, quiet) in jobs.iter().zip(&quiet) {
        let stream =
            RandomStream { seed: contexts.config.seed, problem: stream_number(&job.trace.trace_id), sample: STREAM };
        drawn.extend(draw(quiet, contexts.config.pairs, stream));
    }
    let both: Vec<Plan> = drawn
        .iter()
        .map(|(a, b)| contexts.plan(jobs, a.job, a.window, vec![a.spans[0].clone(), b.spans[0].clone()]))
        .collect();
    let results = run.plans("pairs", contexts, jobs, &both)?;
    let rows = drawn.iter().zip(&results).map(|((a, b), result)| {
        let job = &jobs[a.job];
        let Judged { answer, outcome, flipped } = judge(job, result, contexts.config);
        LabelPair {
            trace_id: job.trace.trace_id.clone(),
            first: a.window as i32,
            second: b.window as i32,
            answer,
            outcome: outcome.name().to_owned(),
            flipped,
        }
    });
    Ok(rows.collect())
}

/// Up to `n` different pairs that do not overlap, in order of their windows.
fn draw<'p>(among: &[&'p Plan], n: usize, stream: RandomStream) -> Vec<(&'p Plan, &'p Plan)> {
    let is_apart = |a: usize, b: usize| among[a].spans[0].end <= among[b].spans[0].start;
    let all = (0..among.len()).flat_map(|a| (a + 1..among.len()).map(move |b| (a, b))).filter(|&(a, b)| is_apart(a, b));
    let mut chosen = BTreeSet::new();
    if n >= all.clone().count() {
        chosen.extend(all);
    } else {
        let index = |step: usize| ((stream.uniform(step) * among.len() as f64) as usize).min(among.len() - 1);
        for at in 0..n * DRAWS_A_PAIR {
            let (a, b) = (index(2 * at), index(2 * at + 1));
            let (a, b) = (a.min(b), a.max(b));
            if a < b && is_apart(a, b) {
                chosen.insert((a, b));
            }
            if chosen.len() == n {
                break;
            }
        }
    }
    chosen.into_iter().map(|(a, b)| (among[a], among[b])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_apart_and_different() {
        let plan = |at: usize| Plan {
            job: 0,
            window: at,
            spans: std::iter::once(16 * at..16 * at + 32).collect(),
            filler: Vec::new(),
        };
        let plans: Vec<Plan> = (0..6).map(plan).collect();
        let among: Vec<&Plan> = plans.iter().collect();
        let stream = RandomStream { seed: 1, problem: 2, sample: STREAM };
        let pairs: Vec<(usize, usize)> = draw(&among, 99, stream).iter().map(|(a, b)| (a.window, b.window)).collect();
        assert_eq!(pairs.len(), 10, "all that do not overlap: {pairs:?}");
        assert!(pairs.iter().all(|(a, b)| a + 2 <= *b) && pairs.is_sorted());
        assert_eq!(draw(&among, usize::MAX, stream).len(), 10, "no more than there are");
        assert_eq!(draw(&among, 3, stream).len(), 3);
        assert!(draw(&among[..1], 3, stream).is_empty());
    }
}
