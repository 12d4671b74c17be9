//! A number in [0, 1) that depends on seed, problem, sample, position and kept set only.
//!
//! One kept set for all heads has the numbers of set 0. With a set for each layer or head, each set draws for itself.
//! `random-anew` draws again at each eviction, so that its numbers also depend on the newest position.

use epikv_model::cache::{Pos, RowCache};
use epikv_model::sampler::RandomStream;

use super::frozen::Frozen;
use super::row::ScoreRow;
use super::score::{Need, Score, ScoreSpec, Step};
use crate::error::Result;

/// Keeps the numbers of this score apart from those that choose tokens, which have the same keys.
const STREAM: u64 = 0x0065_7669_6374_696f;

pub(crate) static SPEC: ScoreSpec = ScoreSpec {
    name: "random",
    doc: "A random number, drawn once for each token and kept set",
    source: "baseline",
    needs: &[Need::RandomNumbers],
    frozen: true,
    by_set: true,
    ..ScoreSpec::BLANK
};

#[derive(Debug)]
struct Random {
    stream: RandomStream,
    numbers: Frozen,
}

/// The row of the table.
pub(crate) const ROW: ScoreRow =
    ScoreRow::plain(&SPEC, |setup| Ok(Box::new(Random { stream: setup.stream, numbers: Frozen::default() })));

/// The number of a position in a kept set.
fn drawn(set: usize, pos: Pos, stream: RandomStream) -> f32 {
    let own = RandomStream { seed: stream.seed ^ STREAM, ..stream };
    // Positions are 32 bits.
    own.uniform((set << 32) | pos.0 as usize) as f32
}

impl Score for Random {
    fn spec(&self) -> &'static ScoreSpec {
        &SPEC
    }

    fn observe(&mut self, step: &Step<'_>) -> Result<()> {
        let fed = self.numbers.len() as u32;
        let (fresh, stream) = (fed..fed + step.chunk.len() as u32, self.stream);
        self.numbers
            .extend_sets(step.cache.sets().len(), |set| fresh.clone().map(move |pos| drawn(set, Pos(pos), stream)));
        Ok(())
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        Ok(self.numbers.of(cache))
    }

    fn frozen(&self) -> Option<&Frozen> {
        Some(&self.numbers)
    }
}

pub(crate) static ANEW: ScoreSpec = ScoreSpec {
    name: "random-anew",
    doc: "A random number, drawn at each eviction for each token and kept set",
    source: "VaSE (arXiv 2606.03928), section 3, its random eviction",
    needs: &[Need::RandomNumbers],
    ..ScoreSpec::BLANK
};

#[derive(Debug)]
struct RandomAnew {
    stream: RandomStream,
}

/// The row of the table.
pub(crate) const ANEW_ROW: ScoreRow = ScoreRow::plain(&ANEW, |setup| Ok(Box::new(RandomAnew { stream: setup.stream })));

impl Score for RandomAnew {
    fn spec(&self) -> &'static ScoreSpec {
        &ANEW
    }

    fn scores(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        let n_sets = cache.sets().len();
        let newest = cache.last().map_or(0, |pos| pos.0 as usize);
        let sets = cache.sets().iter().enumerate();
        let of = |(set, held): (usize, &epikv_model::cache::SlotMap)| {
            held.positions().map(|pos| drawn(newest * n_sets + set, pos, self.stream)).collect()
        };
        Ok(sets.map(of).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: RandomStream = RandomStream { seed: 1, problem: 2, sample: 3 };

    #[test]
    fn numbers_are_keyed_and_are_not_those_that_choose_tokens() {
        let of = |stream| drawn(0, Pos(5), stream).to_bits();
        let other_keys =
            [RandomStream { seed: 9, ..KEYS }, RandomStream { problem: 9, ..KEYS }, RandomStream { sample: 9, ..KEYS }];
        assert!(other_keys.iter().all(|&keys| of(keys) != of(KEYS)));
        assert_ne!(drawn(1, Pos(5), KEYS).to_bits(), of(KEYS), "each kept set has its own");
        assert_ne!(of(KEYS), (KEYS.uniform(5) as f32).to_bits());
        assert!((0..500).all(|p| (0.0..=1.0).contains(&drawn(p as usize % 7, Pos(p), KEYS))));
    }
}
