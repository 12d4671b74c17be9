//! The problem sets of a study, and those that are pooled.

use std::collections::BTreeMap;

use epikv_schemas::Trace;

use crate::error::{InputError, Result};
use crate::study::problems::Problems;
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

    /// Reads `aime24+aime25`.
    ///
    /// # Errors
    /// If it names less than two problem sets, or one twice.
    pub fn parse(typed: &str) -> Result<Self> {
        let members: Vec<String> = typed.split('+').map(|name| name.trim().to_owned()).collect();
        if members.len() < 2 || members.iter().enumerate().any(|(at, name)| members[..at].contains(name)) {
            return Err(InputError::Pool { typed: typed.to_owned() }.into());
        }
        Ok(Self { members })
    }

    /// Refuses pools with a problem set that no trace belongs to.
    ///
    /// # Errors
    /// If there is one.
    pub fn check(pools: &[Self], traces: &[Trace]) -> Result<()> {
        let mut known: Vec<&str> = traces.iter().map(|trace| trace.dataset.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        for pool in pools {
            if let Some(name) = pool.members.iter().find(|name| !known.contains(&name.as_str())) {
                let (pool, known, name) = (pool.name(), known.join(", "), name.clone());
                return Err(InputError::OtherSet { pool, known, name }.into());
            }
        }
        Ok(())
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

/// The problems of samples, which may belong to several problem sets.
pub(crate) fn problems(samples: &[&Sample]) -> Problems {
    Problems::new(samples.iter().map(|sample| (&sample.dataset, &sample.problem_id)))
}
