//! The scores of one generation as they come in.

use std::sync::Arc;

use epikv_model::cache::{Pos, RowCache, SlotMap};
use epikv_model::sampler::RandomStream;
use epikv_signals::{AttentionSum, Chunk, KeyScore, LagScore, Signal, Stamps, WindowQueries};

use crate::error::{Error, Result};
use crate::policy::own_score::{OwnKind, OwnScore};
use crate::policy::score::{Score, drawn};

/// What the score of a token without one counts as.
const LOWEST: f32 = f32::NEG_INFINITY;

/// What an unlabelled token scores when labels are replayed: unknown is kept first.
const UNLABELLED: f32 = 1.0;

/// Labels by position, prompt included: the share of windows over a token that flipped the answer.
pub type Labels = Arc<[Option<f32>]>;

/// Scores that are given once: one a token fed, `[n]`, by position.
#[derive(Debug)]
pub(crate) struct Frozen {
    source: Source,
    values: Vec<f32>,
}

#[derive(Debug)]
enum Source {
    Recency,
    Random(RandomStream),
    Labels(Labels),
    Signal(Box<dyn Signal>),
}

/// The scores of a generation.
#[derive(Debug)]
pub(crate) enum Scores {
    Frozen(Frozen),
    /// Kept up to date token by token.
    Live(Live),
    /// A function of what is held.
    Cache(CacheScore),
    /// A function of what is held and of the last queries.
    Window(WindowQueries),
}

/// Scores of which each token held has one that changes, by kept set and in order of positions.
#[derive(Debug)]
pub(crate) enum Live {
    Sum(AttentionSum),
    Stamps(Stamps),
}

impl Live {
    /// The scores of a kept set.
    pub(crate) fn of(&self, set: usize) -> &[f32] {
        match self {
            Self::Sum(sums) => sums.of(set),
            Self::Stamps(stamps) => stamps.of(set),
        }
    }

    fn push(&mut self, chunk: &Chunk<'_>, cache: &RowCache, prompt: bool) -> Result<()> {
        match self {
            Self::Sum(sums) => sums.push(chunk, cache, prompt)?,
            Self::Stamps(stamps) => stamps.push(chunk, cache, prompt)?,
        }
        Ok(())
    }

    /// Forgets the token at a place of a kept set, which was evicted.
    pub(crate) fn remove(&mut self, set: usize, place: usize) {
        match self {
            Self::Sum(sums) => sums.remove(set, place),
            Self::Stamps(stamps) => stamps.remove(set, place),
        }
    }
}

/// A score that is computed anew from the cache.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CacheScore {
    Keys(KeyScore),
    Lag(LagScore),
    Own(fn(&RowCache) -> epikv_signals::Result<Vec<Vec<f32>>>),
}

impl CacheScore {
    /// By kept set, one number a token in order of positions.
    fn of(self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        let all = match self {
            Self::Keys(score) => score.of(cache)?,
            Self::Lag(score) => score.of(cache)?,
            Self::Own(score) => score(cache)?,
        };
        // One that comes from outside may have made a mistake.
        let (expected, got) = (cache.sets().iter().map(SlotMap::len), all.iter().map(Vec::len));
        if !expected.clone().eq(got.clone()) {
            return Err(Error::OwnShape { expected: expected.collect(), got: got.collect() });
        }
        Ok(all)
    }
}

impl Scores {
    /// Nothing scored yet, for a policy that protects the newest `recency` tokens. One that replays labels and has none sees
    /// every token as unlabelled.
    pub(crate) fn new(
        score: Score,
        n_layers: usize,
        recency: usize,
        stream: RandomStream,
        labels: Option<&Labels>,
    ) -> Result<Self> {
        let source = match score {
            Score::H2o(rows) => return Ok(Self::Live(Live::Sum(AttentionSum::new(rows, n_layers)))),
            Score::Raas => return Ok(Self::Live(Live::Stamps(Stamps::new(n_layers)))),
            Score::Window(how) => return Ok(Self::Window(WindowQueries::new(how, n_layers, recency))),
            Score::Lag(score) => return Ok(Self::Cache(CacheScore::Lag(score))),
            Score::Keys(score) => return Ok(Self::Cache(CacheScore::Keys(score))),
            Score::Own(OwnScore { kind: OwnKind::Cache(score), .. }) => {
                return Ok(Self::Cache(CacheScore::Own(*score)));
            }
            Score::Recency => Source::Recency,
            Score::Random => Source::Random(stream),
            Score::Labels => Source::Labels(labels.cloned().unwrap_or_default()),
            Score::Epikv(_) | Score::Layer(_) | Score::KvKey | Score::Own(_) => match score.signal(n_layers)? {
                Some(signal) => Source::Signal(signal),
                None => Source::Recency,
            },
        };
        Ok(Self::Frozen(Frozen { source, values: Vec::new() }))
    }

    /// The scores of the tokens that each kept set holds, in order of positions.
    pub(crate) fn of(&self, cache: &RowCache) -> Result<Vec<Vec<f32>>> {
        let sets = || cache.sets().iter().enumerate();
        match self {
            Self::Frozen(frozen) => {
                Ok(sets().map(|(_, set)| set.positions().map(|pos| frozen.at(pos)).collect()).collect())
            }
            Self::Live(live) => Ok(sets().map(|(at, _)| live.of(at).to_vec()).collect()),
            Self::Cache(score) => score.of(cache),
            Self::Window(queries) => Ok(queries.of(cache)?),
        }
    }

    /// Takes the new tokens of a pass, prompt tokens or a generated one. The rolling windows of signals start empty at
    /// the first generated token; its predecessor is the last prompt token.
    pub(crate) fn push(&mut self, chunk: &Chunk<'_>, cache: &RowCache, prompt: bool) -> Result<()> {
        match self {
            Self::Live(live) => live.push(chunk, cache, prompt),
            Self::Frozen(frozen) => frozen.push(chunk, prompt),
            Self::Window(queries) => Ok(queries.push(chunk)?),
            Self::Cache(_) => Ok(()),
        }
    }
}

impl Frozen {
    fn push(&mut self, chunk: &Chunk<'_>, prompt: bool) -> Result<()> {
        let fresh = self.values.len()..self.values.len() + chunk.len();
        match &mut self.source {
            Source::Recency => self.values.extend(fresh.map(|pos| pos as f32)),
            Source::Random(stream) => self.values.extend(fresh.map(|pos| drawn(Pos(pos as u32), *stream))),
            Source::Labels(labels) => {
                self.values.extend(fresh.map(|pos| labels.get(pos).copied().flatten().unwrap_or(UNLABELLED)));
            }
            Source::Signal(_) if prompt => self.values.extend(fresh.map(|_| LOWEST)),
            Source::Signal(signal) => {
                self.values.extend(signal.push(chunk)?.into_iter().map(|score| score.unwrap_or(LOWEST)));
            }
        }
        Ok(())
    }

    /// The score of a token that was fed.
    pub(crate) fn at(&self, pos: Pos) -> f32 {
        self.values[pos.0 as usize]
    }
}
