//! Records every evicted token with its score and reason, and passes the records on in parts, so that memory stays
//! bounded.

use epikv_model::cache::{Pos, RowCache, Scope};

use crate::engine::evictor::Cut;

/// Evictions that a generation holds before it hands them on, about 3 MB.
pub(crate) const MOST_RECORDED: usize = 1 << 16;

/// A token that one kept set lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Eviction {
    /// Generated tokens that had been fed.
    pub step: usize,
    /// Layer of the kept set; `None` where all share it.
    pub layer: Option<usize>,
    /// KV head of the kept set; `None` where all share it.
    pub head: Option<usize>,
    /// The token's position in the whole sequence.
    pub pos: Pos,
    /// Its score; `None` where it had none.
    pub score: Option<f32>,
    /// The lowest score of what stayed without protection.
    pub kept_score: Option<f32>,
}

impl Eviction {
    /// Why it went, in the words of the record.
    pub fn reason(&self) -> &'static str {
        match (self.score, self.kept_score) {
            (None, _) => "unscored",
            (Some(own), Some(kept)) if own.total_cmp(&kept).is_eq() => "tie",
            _ => "lowest_score",
        }
    }
}

/// Evictions of one generation that were not handed on yet.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    evictions: Vec<Eviction>,
    /// Parts handed on.
    parts: usize,
}

impl Recorder {
    /// Notes what each kept set lost.
    pub(crate) fn note(&mut self, cut: &Cut, cache: &RowCache) {
        let sets = cache.sets().len();
        let heads = cache.n_kv_heads();
        // A score that is not finite stands for none.
        let finite = |score: f32| score.is_finite().then_some(score);
        for set in 0..sets {
            let (layer, head) = match cache.scope() {
                Scope::Global => (None, None),
                Scope::PerLayer => (Some(set), None),
                Scope::PerHead => (Some(set / heads), Some(set % heads)),
            };
            let removal = cut.of(set);
            let kept_score = removal.kept_score.and_then(finite);
            let evictions = removal.removed.iter().map(|removed| Eviction {
                step: cut.n_generated,
                layer,
                head,
                pos: removed.pos,
                score: finite(removed.score),
                kept_score,
            });
            self.evictions.extend(evictions);
        }
    }

    /// The next part, if it has `least` evictions or more.
    pub(crate) fn take(&mut self, least: usize) -> Option<(usize, Vec<Eviction>)> {
        (self.evictions.len() >= least).then(|| {
            self.parts += 1;
            (self.parts - 1, std::mem::take(&mut self.evictions))
        })
    }
}
