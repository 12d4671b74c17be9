//! The problem sets of a study, and those that are pooled.

use std::collections::BTreeMap;

use crate::study::sample::Sample;

/// Problem sets that are also analysed together, such as years of one competition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Their names.
    pub members: Vec<String>,
}

impl Pool {
    /// `aime24+aime25`.
    pub fn name(&self) -> String {
        self.members.join("+")
    }
}

/// The problem sets of the samples in order of their names, then the pools, each with its samples.
pub(crate) fn problem_sets<'s>(samples: &'s [Sample], pools: &[Pool]) -> Vec<(String, Vec<&'s Sample>)> {
    let mut sets: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        sets.entry(&sample.dataset).or_default().push(sample);
    }
    let pooled = pools.iter().map(|pool| {
        let own = samples.iter().filter(|sample| pool.members.contains(&sample.dataset));
        (pool.name(), own.collect())
    });
    sets.into_iter().map(|(name, own)| (name.to_owned(), own)).chain(pooled).collect()
}
