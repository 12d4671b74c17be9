//! Plans of a forward pass: what it records, and which held tokens it reads. There are no callbacks.
//!
//! Retrieval policies need a read plan: nothing is freed, and each step reads a part of the tokens held. Attention
//! scores are defined over all tokens held, so a pass with a read plan records no attention.

use crate::cache::{Pos, RowCache, Scope, Slot};
use crate::error::{Error, Result};
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

/// What each row of a pass reads; `None` where that is everything.
#[derive(Debug)]
pub(crate) struct Reads(Vec<Option<RowReads>>);

/// The slots that one row reads, the new tokens' included.
#[derive(Debug)]
struct RowReads {
    /// Who reads the same slots.
    scope: Scope,
    lists: Vec<ReadList>,
}

/// The slots that a KV head reads, in order of positions.
#[derive(Debug)]
pub(crate) struct ReadList {
    /// Places in the shared prefix.
    pub(crate) prefix: Vec<u32>,
    /// Own slots.
    pub(crate) own: Vec<u32>,
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

impl Reads {
    /// What a KV head of a row reads; `None` where that is everything.
    pub(crate) fn list(&self, row: usize, cache: &RowCache, layer: usize, head: usize) -> Option<&ReadList> {
        self.0[row].as_ref().map(|reads| reads.list(cache, layer, head))
    }

    /// Adds the new tokens, whose slots are given by row and kept set.
    pub(crate) fn append(&mut self, caches: &[&mut RowCache], slots: &[Vec<Vec<Slot>>]) {
        for ((reads, cache), slots) in self.0.iter_mut().zip(caches).zip(slots) {
            if let Some(reads) = reads {
                reads.append(cache, slots);
            }
        }
    }

    /// Keys that the newest token of each row attends to, summed over layers and KV heads.
    pub(crate) fn n_read(&self, caches: &[&mut RowCache]) -> Vec<u64> {
        let of = |(reads, cache): (&Option<RowReads>, &&mut RowCache)| {
            let keys = |(layer, head)| match reads {
                Some(reads) => reads.list(cache, layer, head).len(),
                None => cache.len(cache.set_index(layer, head)),
            };
            cache.heads().map(keys).sum::<usize>() as u64
        };
        self.0.iter().zip(caches).map(of).collect()
    }
}

impl RowReads {
    fn list(&self, cache: &RowCache, layer: usize, head: usize) -> &ReadList {
        &self.lists[self.scope.set_index(cache.n_kv_heads(), layer, head)]
    }

    fn append(&mut self, cache: &RowCache, slots: &[Vec<Slot>]) {
        let mut set = 0;
        for (layer, head) in cache.heads() {
            if self.scope.set_index(cache.n_kv_heads(), layer, head) == set {
                let own = &slots[cache.set_index(layer, head)];
                self.lists[set].own.extend(own.iter().map(|slot| slot.0 as u32));
                set += 1;
            }
        }
    }
}

impl ReadList {
    fn of(positions: &[Pos], cache: &RowCache, layer: usize, head: usize) -> Result<Self> {
        if let Some(pair) = positions.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(wrong("positions ascending".to_owned(), format!("{} before {}", pair[0].0, pair[1].0)));
        }
        let shared = cache.prefix().map_or(&[][..], |(prefix, n)| &prefix.positions()[..n]);
        let set = cache.set_of(layer, head);
        let (mut prefix, mut own) = (Vec::new(), Vec::with_capacity(positions.len()));
        for pos in positions {
            if let Ok(place) = shared.binary_search(pos) {
                prefix.push(place as u32);
            } else if let Some(place) = set.place_of(*pos) {
                own.push(set.order()[place]);
            } else {
                let expected = format!("positions that head {head} of layer {layer} holds");
                return Err(wrong(expected, pos.0.to_string()));
            }
        }
        Ok(Self { prefix, own })
    }

    fn len(&self) -> usize {
        self.prefix.len() + self.own.len()
    }
}

fn finer(a: Scope, b: Scope) -> Scope {
    match (a, b) {
        (Scope::PerHead, _) | (_, Scope::PerHead) => Scope::PerHead,
        (Scope::PerLayer, _) | (_, Scope::PerLayer) => Scope::PerLayer,
        (Scope::Global, Scope::Global) => Scope::Global,
    }
}

fn wrong(expected: String, got: String) -> Error {
    Error::Request { what: "read plan", expected, got }
}
