//! Which part of a flipping window is it? Halves that flip alone are halved again, down to four tokens.
//!
//! A window whose halves both leave the answer as it is flips only as a whole: then it is itself the smallest part. Parts
//! that several windows share are tried once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use epikv_schemas::{LabelRefined, LabelWindow};

use crate::error::Result;
use crate::run::job::Job;
use crate::run::plan::{Contexts, Plan};
use crate::run::regenerations::Regenerations;
use crate::run::rows::{Judged, judge};

/// Parts of this many tokens are not halved.
const SMALLEST: usize = 4;

/// A part of a trace: the job, and its tokens.
type Part = (usize, usize, usize);

/// Tries the halves of flipping windows. One row a part that was tried.
pub(crate) fn refine(
    run: &mut Regenerations<'_>,
    contexts: &Contexts<'_>,
    jobs: &[Job<'_>],
    plans: &[Plan],
    windows: &[LabelWindow],
) -> Result<Vec<LabelRefined>> {
    let flipping = plans.iter().zip(windows).filter(|(_, window)| window.flipped == Some(true));
    let mut open: BTreeSet<Part> =
        flipping.map(|(plan, _)| (plan.job, plan.spans[0].start, plan.spans[0].end)).collect();
    let mut tried: BTreeMap<Part, LabelRefined> = BTreeMap::new();
    while !open.is_empty() {
        let halves: BTreeSet<Part> = open.iter().flat_map(|&part| halves(part)).collect();
        let fresh: Vec<Plan> = halves
            .iter()
            .filter(|part| !tried.contains_key(part))
            .map(|&(job, start, end)| contexts.plan(jobs, job, 0, vec![Range { start, end }]))
            .collect();
        let results = run.plans("parts", contexts, jobs, &fresh)?;
        open.clear();
        for (plan, result) in fresh.iter().zip(&results) {
            let (job, Range { start, end }) = (&jobs[plan.job], plan.spans[0].clone());
            let Judged { answer, outcome, flipped } = judge(job, result, contexts.config);
            if flipped == Some(true) {
                open.insert((plan.job, start, end));
            }
            let row = LabelRefined {
                trace_id: job.trace.trace_id.clone(),
                start: start as i32,
                end: end as i32,
                answer,
                outcome: outcome.name().to_owned(),
                flipped,
                smallest: false,
            };
            tried.insert((plan.job, start, end), row);
        }
    }
    let flips = |part: &Part| tried.get(part).is_some_and(|row| row.flipped == Some(true));
    let smallest: Vec<Part> =
        tried.keys().filter(|part| flips(part) && !halves(**part).iter().any(flips)).copied().collect();
    for part in smallest {
        if let Some(row) = tried.get_mut(&part) {
            row.smallest = true;
        }
    }
    Ok(tried.into_values().collect())
}

/// The halves of a part; none of a small one.
fn halves((job, start, end): Part) -> Vec<Part> {
    if end - start <= SMALLEST {
        return Vec::new();
    }
    let middle = start + (end - start).div_ceil(2);
    vec![(job, start, middle), (job, middle, end)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_halved_down_to_four_tokens() {
        assert_eq!(halves((0, 10, 42)), [(0, 10, 26), (0, 26, 42)]);
        assert_eq!(halves((0, 10, 15)), [(0, 10, 13), (0, 13, 15)]);
        assert!(halves((0, 10, 14)).is_empty());
    }
}
