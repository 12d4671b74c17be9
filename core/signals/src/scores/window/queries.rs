//! The queries of the observation window, from which the scores are made when an eviction asks.

use epikv_model::cache::RowCache;
use epikv_model::taps::{ProbePlan, Reduce, TapPoint};

use super::attention::WindowAttention;
use crate::error::{Error, Result};
use crate::scores::score::{Score, ScoreSpec, Step};
use crate::taps::held::by_set;

/// The queries of the last tokens of one generation, from which the scores are made.
#[derive(Debug, Clone)]
pub struct WindowQueries {
    spec: &'static ScoreSpec,
    how: WindowAttention,
    rows: usize,
    /// The last queries of each layer, oldest first, `[at most w, H D]`.
    layers: Vec<Vec<f32>>,
    /// `H D`.
    width: usize,
}

impl WindowQueries {
    /// Nothing seen yet, for a model of `n_layers` and a policy that protects the newest `recency` tokens.
    pub fn new(spec: &'static ScoreSpec, how: WindowAttention, n_layers: usize, recency: usize) -> Self {
        Self { spec, how, rows: how.rows.min(recency).max(1), layers: vec![Vec::new(); n_layers], width: 0 }
    }
}

impl Score for WindowQueries {
    fn spec(&self) -> &'static ScoreSpec {
        self.spec
    }

    fn plan(&self) -> ProbePlan {
        let tap = |plan: ProbePlan, layer| plan.tap(TapPoint::QueryPostRope(layer), Reduce::Full);
        (0..self.layers.len()).fold(ProbePlan::default(), tap)
    }

    fn observe(&mut self, step: &Step<'_>) -> Result<()> {
        for (layer, queries) in self.layers.iter_mut().enumerate() {
            self.width =
                step.chunk.lend(self.spec.name, TapPoint::QueryPostRope(layer), Reduce::Full, |all, width| {
                    queries.extend_from_slice(&all[all.len().saturating_sub(self.rows * width)..]);
                    queries.drain(..queries.len().saturating_sub(self.rows * width));
                    width
                })?;
        }
        Ok(())
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        let (layers, heads) = (cache.n_layers(), cache.n_kv_heads());
        if layers != self.layers.len() || !self.width.is_multiple_of(heads.max(1)) {
            return Err(Error::QueryShape { expected: (layers, heads), got: (self.layers.len(), self.width) });
        }
        by_set(cache, |head, held| {
            let own = self.width / head.n_heads;
            let rows = self.layers[head.layer].chunks_exact(self.width.max(1));
            let queries: Vec<&[f32]> = rows.map(|row| &row[head.index * own..(head.index + 1) * own]).collect();
            self.how.of_head(&queries, held)
        })
    }
}
