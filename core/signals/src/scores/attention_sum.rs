//! The attention that each cached token has received so far: a function of the live cache, not set when the token is
//! fed.
//!
//! ```text
//! s_{l,h}(j) = sum over rows r of (1/G) sum over the G query heads of group h of p_{l,q}(r, j)
//! ```
//!
//! with `p` the attention probabilities as computed, over the tokens still held when row `r` was computed. Rows are all
//! since the start of the prompt, those of generated tokens only, or the newest row alone. A kept set that several heads or layers share has
//! the mean of their sums. The sums are f32 and stand in order of positions, as the kept set does.
//!
//! Cost: `O(H n)` a layer and token; state: one number a token and kept set.
//!
//! # References
//! H2O (arXiv 2306.14048), section 4, "heavy hitters"; TOVA (arXiv 2401.06104), section 3: the newest row.

use epikv_model::cache::{Pos, RowCache, Scope};
use epikv_model::taps::{AttentionTap, ProbePlan};

use super::ordered::Ordered;
use super::row::{Form, ScoreRow};
use super::score::{Need, Score, ScoreSpec, Step};
use crate::error::{Error, Result};

pub(crate) static H2O: ScoreSpec = ScoreSpec {
    name: "h2o",
    doc: "Attention received since the start, mean over query heads; h2o(decode): since the end of the prompt",
    source: "H2O (arXiv 2306.14048), section 4",
    differs: "query heads of a group share a kept set by their mean, and sums are f32",
    needs: &[Need::Attention],
    forms: &["decode"],
    weight: true,
    ..ScoreSpec::BLANK
};

pub(crate) static TOVA: ScoreSpec = ScoreSpec {
    name: "tova",
    doc: "Attention received from the newest token, mean over query heads",
    source: "TOVA (arXiv 2401.06104), section 3, as kvpress `TOVAPress`",
    needs: &[Need::Attention],
    weight: true,
    ..ScoreSpec::BLANK
};

/// The rows of the table.
pub(crate) const H2O_ROW: ScoreRow = ScoreRow::with_argument(&H2O, h2o);
pub(crate) const TOVA_ROW: ScoreRow =
    ScoreRow::plain(&TOVA, |setup| Ok(Box::new(AttentionSum::new(AttentionRows::Newest, setup.n_layers))));

fn h2o(argument: &str) -> Option<Form> {
    let rows = match argument {
        "" => AttentionRows::All,
        "decode" => AttentionRows::Decode,
        _ => return None,
    };
    Some(Form::new(argument, move |setup| Ok(Box::new(AttentionSum::new(rows, setup.n_layers)))))
}

/// Which rows of the attention matrix are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AttentionRows {
    /// All since the start: those of the prompt too, which gives early tokens more terms.
    #[default]
    All,
    /// Those of generated tokens. Prompt tokens start at 0 like every other.
    Decode,
    /// The newest one: what the last token looked at, nothing of what came before.
    Newest,
}

/// The sums of one generation, for each kept set of its cache.
#[derive(Debug, Clone)]
pub struct AttentionSum {
    rows: AttentionRows,
    n_layers: usize,
    /// By kept set.
    sums: Vec<Ordered>,
}

impl AttentionSum {
    /// Nothing seen yet, for a model of `n_layers`.
    pub fn new(rows: AttentionRows, n_layers: usize) -> Self {
        Self { rows, n_layers, sums: Vec::new() }
    }

    /// The sums of a kept set, in order of positions.
    pub fn of(&self, set: usize) -> &[f32] {
        self.sums.get(set).map_or(&[], Ordered::values)
    }
}

impl Score for AttentionSum {
    fn spec(&self) -> &'static ScoreSpec {
        if self.rows == AttentionRows::Newest { &TOVA } else { &H2O }
    }

    fn plan(&self) -> ProbePlan {
        let tap = |layer| match self.rows {
            AttentionRows::Newest => AttentionTap::Rows(layer, 1),
            AttentionRows::All | AttentionRows::Decode => AttentionTap::ColumnSum(layer),
        };
        (0..self.n_layers).fold(ProbePlan::default(), |plan, layer| plan.attention(tap(layer)))
    }

    fn observe(&mut self, step: &Step<'_>) -> Result<()> {
        let Step { chunk, cache, prompt } = *step;
        let sets = cache.sets();
        self.sums.resize(sets.len(), Ordered::default());
        for (sums, set) in self.sums.iter_mut().zip(sets) {
            sums.grow(set, 0.0);
            if self.rows == AttentionRows::Newest {
                sums.values_mut().fill(0.0);
            }
        }
        if prompt && self.rows == AttentionRows::Decode {
            return Ok(());
        }
        // What a pass adds to a kept set is summed apart and added once: small numbers first, so that little is rounded.
        let mut fresh = Vec::new();
        for layer in 0..self.n_layers {
            let heads = chunk.attention(layer).unwrap_or_default();
            for (head, seen) in heads.iter().enumerate() {
                let (set, sharing, last) = match cache.scope() {
                    Scope::Global => {
                        (0, self.n_layers * heads.len(), layer + 1 == self.n_layers && head + 1 == heads.len())
                    }
                    Scope::PerLayer => (layer, heads.len(), head + 1 == heads.len()),
                    Scope::PerHead => (layer * heads.len() + head, 1, true),
                };
                let weights = if self.rows == AttentionRows::Newest { &seen.last_rows } else { &seen.column_sum };
                let sums = self.sums[set].values_mut();
                let group = weights.len() / sums.len().max(1);
                if group == 0 || group * sums.len() != weights.len() {
                    return Err(Error::AttentionShape { layer, expected: sums.len(), got: weights.len() });
                }
                fresh.resize(sums.len(), 0.0);
                for of_query_head in weights.chunks_exact(sums.len()) {
                    for (sum, &weight) in fresh.iter_mut().zip(of_query_head) {
                        *sum += weight;
                    }
                }
                if last {
                    let factor = 1.0 / (group * sharing) as f32;
                    for (sum, &weight) in sums.iter_mut().zip(&fresh) {
                        *sum += factor * weight;
                    }
                    fresh.clear();
                }
            }
            if heads.is_empty() {
                return Err(Error::AttentionShape { layer, expected: self.of(0).len(), got: 0 });
            }
        }
        Ok(())
    }

    fn scores(&self, _: &RowCache) -> Result<Vec<Vec<f32>>> {
        Ok(self.sums.iter().map(|sums| sums.values().to_vec()).collect())
    }

    fn evicted(&mut self, set: usize, pos: Pos) {
        self.sums[set].remove(pos);
    }
}
