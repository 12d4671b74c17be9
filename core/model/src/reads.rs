//! The slots that the rows of a pass read.

use crate::cache::{Pos, RowCache, Scope, Slot};
use crate::error::{Error, Result};

/// What each row of a pass reads; `None` where that is everything.
#[derive(Debug)]
pub(crate) struct Reads(pub(crate) Vec<Option<RowReads>>);

/// The slots that one row reads, the new tokens' included.
#[derive(Debug)]
pub(crate) struct RowReads {
    /// Who reads the same slots.
    pub(crate) scope: Scope,
    pub(crate) lists: Vec<ReadList>,
}

/// The slots that a KV head reads, in order of positions.
#[derive(Debug)]
pub(crate) struct ReadList {
    /// Places in the shared prefix.
    pub(crate) prefix: Vec<u32>,
    /// Own slots.
    pub(crate) own: Vec<u32>,
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
    pub(crate) fn of(positions: &[Pos], cache: &RowCache, layer: usize, head: usize) -> Result<Self> {
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

/// The error of a read plan that does not fit.
pub(crate) fn wrong(expected: String, got: String) -> Error {
    Error::Request { what: "read plan", expected, got }
}
