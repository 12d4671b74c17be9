//! Labels of `epikv label`, as scores to replay.

use std::collections::BTreeMap;

use epikv_schemas::LabelToken;
use epikv_signals::Labels;

use crate::error::{Error, Result};

/// Labels by problem. The traces that were labelled must be named as the problems are, as `epikv trace` does.
#[derive(Debug, Clone, Default)]
pub struct LabelSet {
    problems: BTreeMap<String, Labelled>,
}

#[derive(Debug, Clone)]
struct Labelled {
    /// By position, prompt included.
    token_ids: Vec<Option<u32>>,
    shares: Labels,
}

impl LabelSet {
    /// The share of deciding windows that flipped the answer, at each position that has any.
    pub fn of(tokens: &[LabelToken]) -> Self {
        let mut rows: BTreeMap<&str, Vec<&LabelToken>> = BTreeMap::new();
        for token in tokens {
            rows.entry(&token.trace_id).or_default().push(token);
        }
        let problems = rows.into_iter().map(|(name, rows)| (name.to_owned(), labelled(&rows)));
        Self { problems: problems.collect() }
    }

    /// Whether there are none at all.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// The labels of a problem; `None` where it has none.
    ///
    /// # Errors
    /// If they are of another prompt: then positions mean other tokens.
    pub fn of_problem(&self, problem: &str, prompt: &[u32]) -> Result<Option<Labels>> {
        let Some(labelled) = self.problems.get(problem) else { return Ok(None) };
        for (position, &expected) in prompt.iter().enumerate() {
            let got = labelled.token_ids.get(position).copied().flatten();
            if got != Some(expected) {
                let got = got.map_or_else(|| "none".to_owned(), |id| id.to_string());
                return Err(Error::OtherLabels { problem: problem.to_owned(), position, expected, got });
            }
        }
        Ok(Some(labelled.shares.clone()))
    }
}

fn labelled(rows: &[&LabelToken]) -> Labelled {
    let at = |row: &LabelToken| usize::try_from(row.pos).ok();
    let length = rows.iter().filter_map(|row| at(row)).max().map_or(0, |last| last + 1).min(rows.len());
    let (mut token_ids, mut shares) = (vec![None; length], vec![None; length]);
    for row in rows {
        // A file with holes has fewer rows than positions; what lies beyond is as good as unlabelled.
        if let Some(pos) = at(row).filter(|pos| *pos < length) {
            token_ids[pos] = u32::try_from(row.token_id).ok();
            shares[pos] = (row.n_cover > 0).then(|| f32::from(row.n_flip) / f32::from(row.n_cover));
        }
    }
    Labelled { token_ids, shares: shares.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(pos: i32, n_cover: i16, n_flip: i16) -> LabelToken {
        LabelToken {
            trace_id: "a".to_owned(),
            pos,
            token_id: 10 + pos,
            region: "reason".to_owned(),
            tested: n_cover > 0,
            important: None,
            n_cover,
            n_flip,
        }
    }

    #[test]
    fn shares_stand_by_position() {
        let set = LabelSet::of(&[token(2, 2, 1), token(0, 0, 0), token(1, 2, 2)]);
        let labels = set.of_problem("a", &[10, 11]).expect("the same prompt").expect("labelled");
        assert_eq!(*labels, [None, Some(1.0), Some(0.5)]);
        assert!(set.of_problem("b", &[10]).expect("nothing to compare").is_none());
        let error = set.of_problem("a", &[10, 12]).expect_err("another prompt");
        assert_eq!(error.to_string(), "labels of a: expected token 12 at position 1, got 11");
        assert!(set.of_problem("a", &[10, 11, 12, 13]).is_err(), "a longer prompt");
        assert!(LabelSet::of(&[]).is_empty() && !set.is_empty());
    }
}
