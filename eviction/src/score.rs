//! What a token is worth to a policy: one number, given when the token is fed and never changed.
//!
//! | score | value of the token at position `p` |
//! | --- | --- |
//! | recency | `p` |
//! | random | a number in [0, 1) that depends on (seed, problem, sample, `p`) and nothing else |

use std::fmt;

use epikv_model::cache::Pos;
use epikv_model::sampler::RandomStream;

/// Keeps the numbers of this score apart from those that choose tokens, which have the same keys.
const STREAM: u64 = 0x0065_7669_6374_696f;

/// A score. Higher is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Score {
    /// Newer is higher.
    Recency,
    /// Drawn.
    Random,
}

impl Score {
    /// The score of the token at a position.
    pub(crate) fn of(self, pos: Pos, stream: RandomStream) -> f32 {
        match self {
            Self::Recency => pos.0 as f32,
            Self::Random => {
                let own = RandomStream { seed: stream.seed ^ STREAM, ..stream };
                own.uniform(pos.0 as usize) as f32
            }
        }
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recency => "recency",
            Self::Random => "random",
        })
    }
}

/// The scores of all tokens fed so far, each computed once.
#[derive(Debug, Clone)]
pub(crate) struct Frozen {
    score: Score,
    stream: RandomStream,
    /// By position, `[n]`.
    values: Vec<f32>,
}

impl Frozen {
    pub(crate) fn new(score: Score, stream: RandomStream) -> Self {
        Self { score, stream, values: Vec::new() }
    }

    /// Scores the tokens up to `last` that have no score yet.
    pub(crate) fn extend_to(&mut self, last: Pos) {
        let fresh = self.values.len() as u32..=last.0;
        self.values.extend(fresh.map(|pos| self.score.of(Pos(pos), self.stream)));
    }

    /// The score of a token that has one.
    pub(crate) fn at(&self, pos: Pos) -> f32 {
        self.values[pos.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: RandomStream = RandomStream { seed: 1, problem: 2, sample: 3 };

    #[test]
    fn a_score_does_not_depend_on_when_it_was_asked_for() {
        for score in [Score::Recency, Score::Random] {
            let (mut at_once, mut one_by_one) = (Frozen::new(score, KEYS), Frozen::new(score, KEYS));
            at_once.extend_to(Pos(40));
            (0..=40).for_each(|p| one_by_one.extend_to(Pos(p)));
            at_once.extend_to(Pos(7));
            assert_eq!(at_once.values, one_by_one.values);
        }
    }

    #[test]
    fn drawn_scores_are_keyed_and_are_not_the_numbers_that_choose_tokens() {
        let of = |stream| Score::Random.of(Pos(5), stream).to_bits();
        let other_keys =
            [RandomStream { seed: 9, ..KEYS }, RandomStream { problem: 9, ..KEYS }, RandomStream { sample: 9, ..KEYS }];
        assert!(other_keys.iter().all(|&keys| of(keys) != of(KEYS)));
        assert_ne!(of(KEYS), (KEYS.uniform(5) as f32).to_bits());
        assert!((0..500).all(|p| (0.0..=1.0).contains(&Score::Random.of(Pos(p), KEYS))));
    }
}
