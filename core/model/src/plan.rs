//! Plans of a forward pass: what it records, and which held tokens it reads. There are no callbacks.
//!
//! Retrieval policies need a read plan: nothing is freed, and each step reads a part of the tokens held. Attention
//! scores are defined over all tokens held, so a pass with a read plan records no attention.

use crate::cache::{Pos, RowCache, Scope};
use crate::error::Result;
use crate::reads::{ReadList, Reads, RowReads, wrong};
use crate::taps::ProbePlan;

/// The plan of one forward pass.
#[derive(Debug, Clone, Copy)]
pub struct StepPlan<'p> {
    /// What to record.
    pub probe: &'p ProbePlan,
    /// What each row reads, in the order of the batch; empty where every row reads everything it holds.
    pub read: &'p [ReadPlan],
}

impl<'p> From<&'p ProbePlan> for StepPlan<'p> {
    /// Every row reads everything.
    fn from(probe: &'p ProbePlan) -> Self {
        Self { probe, read: &[] }
    }
}

impl From<&Self> for StepPlan<'_> {
    fn from(plan: &Self) -> Self {
        *plan
    }
}

/// Which of the tokens that a row holds its new tokens attend to.
///
/// The new tokens of the pass always see themselves and those before them in the pass. What is not read stays held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReadPlan {
    /// All.
    #[default]
    All,
    /// The slots of these tokens, of a shared prefix too.
    Slots {
        /// Who reads the same: all layers and heads, the heads of a layer, or nobody. The cache may have another scope.
        scope: Scope,
        /// The tokens, one list for each set of the scope (layer-major); positions held, ascending.
        positions: Vec<Vec<Pos>>,
    },
}

impl StepPlan<'_> {
    /// The slots that the rows read.
    ///
    /// # Errors
    /// If a read plan does not fit its cache, there is not one a row, or attention is to be recorded with one.
    pub(crate) fn reads(&self, caches: &[&mut RowCache]) -> Result<Reads> {
        if self.read.is_empty() {
            return Ok(Reads(caches.iter().map(|_| None).collect()));
        }
        if self.read.len() != caches.len() {
            return Err(wrong(format!("one for each of {} rows, or none", caches.len()), self.read.len().to_string()));
        }
        let reads: Vec<_> =
            self.read.iter().zip(caches).map(|(plan, cache)| plan.reads(cache)).collect::<Result<_>>()?;
        if self.probe.needs_attention() && reads.iter().any(Option::is_some) {
            return Err(wrong("no attention taps beside it".to_owned(), "attention taps".to_owned()));
        }
        Ok(Reads(reads))
    }
}

impl ReadPlan {
    /// The slots of the plan in a cache; `None` where everything is read.
    ///
    /// # Errors
    /// If the lists are not those of the scope, not ascending, or name a token that the cache does not hold.
    fn reads(&self, cache: &RowCache) -> Result<Option<RowReads>> {
        let Self::Slots { scope, positions } = self else { return Ok(None) };
        let (layers, heads) = (cache.n_layers(), cache.n_kv_heads());
        if positions.len() != scope.n_sets(layers, heads) {
            return Err(wrong(
                format!("{} lists of positions", scope.n_sets(layers, heads)),
                positions.len().to_string(),
            ));
        }
        let finer = finer(*scope, cache.scope());
        let mut lists = Vec::with_capacity(finer.n_sets(layers, heads));
        for (layer, head) in cache.heads() {
            if finer.set_index(heads, layer, head) == lists.len() {
                lists.push(ReadList::of(&positions[scope.set_index(heads, layer, head)], cache, layer, head)?);
            }
        }
        Ok(Some(RowReads { scope: finer, lists }))
    }
}

fn finer(a: Scope, b: Scope) -> Scope {
    match (a, b) {
        (Scope::PerHead, _) | (_, Scope::PerHead) => Scope::PerHead,
        (Scope::PerLayer, _) | (_, Scope::PerLayer) => Scope::PerLayer,
        (Scope::Global, Scope::Global) => Scope::Global,
    }
}
