//! Baselines: predictors of the labels that do not use the model.
//!
//! | name | value at position `t` of trace `i` |
//! | --- | --- |
//! | `position` | `t`, the token index, prompt included |
//! | `token_identity` | mean label of the same token id in the traces of the *other* problems of the set; where the id is not among their labelled tokens, the mean label of all of those |
//!
//! A signal that is no better than these shows only the positions or the words of important tokens. A third baseline is
//! a signal, [`EMBEDDING`], since it is smoothed and tested like the others.
//!
//! `token_identity` leaves the own problem out, since its other samples know the labels too; it is undefined for a single
//! problem.

use std::collections::BTreeMap;

use crate::study::join::Labelled;
use crate::study::pools::problems;
use crate::study::sample::Sample;

/// The change of the embedding, which depends on two tokens and no context. It is recorded with every study.
pub const EMBEDDING: &str = "embed_l2";

epikv_words::words! {
    /// A baseline.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Baseline {
        /// The token index.
        Position = "position",
        /// Mean label of the same token elsewhere.
        TokenIdentity = "token_identity",
    }
}

impl Baseline {
    /// The baseline at every token of the traces of one problem set, in their order: null where no trace tells.
    pub(crate) fn series(self, samples: &[&Sample]) -> Vec<Vec<Option<f32>>> {
        let columns = self.columns(samples);
        let of = |(sample, column): (&&Sample, Labelled)| {
            let n = sample.recording.token_ids.len();
            if self == Self::Position {
                // Below 2^24, the longest context there is, an index is exact as f32.
                return (0..n).map(|pos| Some(pos as f32)).collect();
            }
            let mut series = vec![None; n];
            if column.n_undefined() == 0 {
                for (&(pos, _), &value) in sample.mask.tokens().iter().zip(column.signal()) {
                    series[pos] = Some(value);
                }
            }
            series
        };
        samples.iter().zip(columns).map(of).collect()
    }

    /// The baseline of the traces of one problem set, in their order.
    pub(crate) fn columns(self, samples: &[&Sample]) -> Vec<Labelled> {
        match self {
            Self::Position => samples.iter().map(|sample| position(sample)).collect(),
            Self::TokenIdentity => token_identity(samples),
        }
    }
}

fn position(sample: &Sample) -> Labelled {
    // Below 2^24, the longest context there is, an index is exact as f32.
    Labelled::new(sample.mask.tokens().iter().map(|&(pos, one)| (Some(pos as f32), one)))
}

/// Labelled tokens and important ones among them.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    n: u64,
    n_important: u64,
}

impl Count {
    fn add(&mut self, important: bool) {
        self.n += 1;
        self.n_important += u64::from(important);
    }

    fn mean_without(self, own: Self) -> Option<f32> {
        let (n, n_important) = (self.n - own.n, self.n_important - own.n_important);
        (n > 0).then(|| (n_important as f64 / n as f64) as f32)
    }
}

/// Counts of one problem or all: by token id, and of all ids.
#[derive(Default)]
struct Counts {
    by_id: BTreeMap<u32, Count>,
    all: Count,
}

fn token_identity(samples: &[&Sample]) -> Vec<Labelled> {
    let tokens = |sample: &Sample| -> Vec<(u32, bool)> {
        sample.mask.tokens().iter().map(|&(pos, one)| (sample.recording.token_ids[pos], one)).collect()
    };
    let count = |tokens: &[(u32, bool)], counts: &mut Counts| {
        for &(id, one) in tokens {
            counts.by_id.entry(id).or_default().add(one);
            counts.all.add(one);
        }
    };
    let by_trace: Vec<_> = samples.iter().map(|sample| tokens(sample)).collect();
    let problems = problems(samples);
    let mut total = Counts::default();
    let mut by_problem: Vec<Counts> = (0..problems.len()).map(|_| Counts::default()).collect();
    for (tokens, &problem) in by_trace.iter().zip(problems.of_traces()) {
        count(tokens, &mut total);
        count(tokens, &mut by_problem[problem]);
    }
    let of_trace = |(tokens, &problem): (&Vec<(u32, bool)>, &usize)| {
        let own = &by_problem[problem];
        let elsewhere = total.all.mean_without(own.all);
        let value = |id: u32| total.by_id[&id].mean_without(own.by_id[&id]).or(elsewhere);
        Labelled::new(tokens.iter().map(|&(id, one)| (value(id), one)))
    };
    by_trace.iter().zip(problems.of_traces()).map(of_trace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recording;
    use crate::shared::label;
    use crate::study::join::Mask;

    fn sample(tokens: &[(u32, bool)]) -> Sample {
        sample_of("p", tokens)
    }

    fn sample_of(problem: &str, tokens: &[(u32, bool)]) -> Sample {
        let token_ids = tokens.iter().map(|t| t.0).collect();
        let recording = Recording { trace_id: "t".to_owned(), token_ids, n_prompt: 0, columns: Vec::new() };
        let labels: Vec<_> =
            tokens.iter().enumerate().map(|(pos, &(id, one))| label(pos as i32, id as i32, true, Some(one))).collect();
        let mask = Mask::new(&recording, &labels).expect("its labels");
        Sample { dataset: "d".to_owned(), problem_id: problem.to_owned(), recording, random: None, mask, windows: None }
    }

    #[test]
    fn identity_is_learnt_from_the_other_problems() {
        let a = sample_of("a", &[(1, true), (2, false), (7, true)]);
        let b = sample_of("b", &[(1, false), (2, true), (1, true), (9, true)]);
        let found = Baseline::TokenIdentity.columns(&[&a, &b]);
        // In b, id 1 is important once of two, id 2 always; id 7 is not there, and 3 of its 4 tokens are important.
        assert_eq!(found[0].signal(), [0.5, 1.0, 0.75]);
        assert_eq!(found[1].signal(), [1.0, 0.0, 1.0, (2.0_f64 / 3.0) as f32]);
        let alone = Baseline::TokenIdentity.columns(&[&a]);
        assert_eq!((alone[0].signal().len(), alone[0].n_undefined()), (0, 3));
        // Another sample of the same problem teaches nothing.
        assert_eq!(
            Baseline::TokenIdentity.columns(&[&a, &b, &b]),
            [found[0].clone(), found[1].clone(), found[1].clone()]
        );
        assert_eq!(Baseline::TokenIdentity.columns(&[&a, &a])[0].signal().len(), 0);
    }

    #[test]
    fn position_is_the_token_index() {
        let found = Baseline::Position.columns(&[&sample(&[(5, true), (5, false)])]);
        assert_eq!((found[0].signal(), found[0].important()), (&[0.0, 1.0][..], &[true, false][..]));
    }
}
