//! Labels of an earlier `epikv label`, replayed: the share of windows over a token that flipped the answer.

use epikv_model::cache::RowCache;

use super::frozen::Frozen;
use super::row::ScoreRow;
use super::score::{Labels, Need, Score, ScoreSpec, Step};
use crate::error::Result;

/// What an unlabelled token scores: unknown is kept first.
const UNLABELLED: f32 = 1.0;

pub(crate) static SPEC: ScoreSpec = ScoreSpec {
    name: "labels",
    doc: "The share of occlusion windows over the token that flipped the answer; 1 where there is no label",
    source: "the labels of `epikv label` themselves",
    needs: &[Need::Labels],
    frozen: true,
    ..ScoreSpec::BLANK
};

#[derive(Debug)]
struct Replayed {
    labels: Labels,
    numbers: Frozen,
}

/// The row of the table.
pub(crate) const ROW: ScoreRow = ScoreRow::plain(&SPEC, |setup| {
    Ok(Box::new(Replayed { labels: setup.labels.clone().unwrap_or_default(), numbers: Frozen::default() }))
});

impl Score for Replayed {
    fn spec(&self) -> &'static ScoreSpec {
        &SPEC
    }

    fn observe(&mut self, step: &Step<'_>) -> Result<()> {
        let fed = self.numbers.len();
        let label = |pos: usize| self.labels.get(pos).copied().flatten().unwrap_or(UNLABELLED);
        self.numbers.extend((fed..fed + step.chunk.len()).map(label));
        Ok(())
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        Ok(self.numbers.of(cache))
    }

    fn frozen(&self) -> Option<&Frozen> {
        Some(&self.numbers)
    }
}
