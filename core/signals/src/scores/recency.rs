//! Newer is higher: the score of a token is its position.

use epikv_model::cache::RowCache;

use super::frozen::Frozen;
use super::row::ScoreRow;
use super::score::{Score, ScoreSpec, Step};
use crate::error::Result;

pub(crate) static SPEC: ScoreSpec = ScoreSpec {
    name: "recency",
    doc: "The position of the token: newer is higher",
    source: "baseline",
    frozen: true,
    ..ScoreSpec::BLANK
};

#[derive(Debug, Default)]
struct Recency(Frozen);

/// The row of the table.
pub(crate) const ROW: ScoreRow = ScoreRow::plain(&SPEC, |_| Ok(Box::<Recency>::default()));

impl Score for Recency {
    fn spec(&self) -> &'static ScoreSpec {
        &SPEC
    }

    fn observe(&mut self, step: &Step<'_>) -> Result<()> {
        let fed = self.0.len();
        self.0.extend((fed..fed + step.chunk.len()).map(|pos| pos as f32));
        Ok(())
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        Ok(self.0.of(cache))
    }

    fn frozen(&self) -> Option<&Frozen> {
        Some(&self.0)
    }
}
