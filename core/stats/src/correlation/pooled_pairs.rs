//! Pooled rank statistics under resampling of traces, from counts between pairs of traces: `O(k^2)` a replicate.
//!
//! The rank of a token is how many tokens lie below it and beside it, and each of these belongs to a trace. With `c_i` the
//! multiplicity of trace `i`, `m_i` its important tokens, and over the important tokens `a` of trace `i`
//!
//! ```text
//! B_ij = sum over a of (2 #{tokens of j below a} + #{tokens of j beside a, itself included})
//! 2 W1 = sum_ij c_i c_j B_ij + sum_i c_i m_i
//! T    = sum over tie groups of (t^3 - t),  t = sum_i c_i n_i(group)
//! ```
//!
//! so the tokens are walked once, for `B` and the tie groups, and never again. A group with tokens of one trace only
//! (every group, where values do not tie) enters `T` by way of one cube a trace. All sums are integers and equal those of
//! [`crate::pooled`], whose replicate costs `O(n)`: better for many short traces, `k^2/2 > n`.

use crate::correlation::rank_sum::BinaryRanks;
use crate::ranks::radix::{key_of, ordered_key, sort_tagged, tagged};
use crate::ranks::rank::cube_minus_self;

/// Counts between the pairs of `k` traces. `8 k^2` bytes, and 8 a token that ties across traces.
#[derive(Debug, Clone)]
pub struct PooledPairs {
    /// `[k]`, tokens and important tokens of each trace.
    n: Vec<u64>,
    n_pos: Vec<u64>,
    /// `[k, k]` with `B_ij + B_ji` at `i < j`, `B_ii` on the diagonal and 0 below it.
    pairs: Vec<u64>,
    /// `[k]`, sum of `t^3` over the tie groups that lie in this trace alone.
    cubes: Vec<u128>,
    /// `[k]`, sum of `t` over the same groups.
    own: Vec<u64>,
    /// Tie groups across traces: tokens of a trace in each, one group after another.
    shared: Vec<(u32, u32)>,
    /// Where each of these groups ends in `shared`.
    ends: Vec<usize>,
}

impl PooledPairs {
    /// Counts the pairs. Each trace is `(signal [n_i], important [n_i])`. Cost `O(n + k m)`.
    ///
    /// Undefined (`None`) when a signal holds a `NaN`.
    ///
    /// # Panics
    ///
    /// If the two columns of a trace differ in length, or with 2^31 traces or more.
    pub fn new(traces: &[(&[f32], &[bool])]) -> Option<Self> {
        let k = traces.len();
        assert!(k < 1 << 31, "a trace index has 31 bits");
        let mut tokens = Vec::with_capacity(traces.iter().map(|(signal, _)| signal.len()).sum());
        for (trace, (signal, important)) in traces.iter().enumerate() {
            assert_eq!(signal.len(), important.len(), "one label a token");
            if signal.iter().any(|x| x.is_nan()) {
                return None;
            }
            let tag = (trace as u32) << 1;
            let keyed = |(&x, &one): (&f32, &bool)| tagged(ordered_key(x), tag | u32::from(one));
            tokens.extend(signal.iter().zip(*important).map(keyed));
        }
        sort_tagged(&mut tokens);
        let mut pairs = Self {
            n: traces.iter().map(|(signal, _)| signal.len() as u64).collect(),
            n_pos: traces.iter().map(|(_, important)| important.iter().filter(|&&one| one).count() as u64).collect(),
            pairs: vec![0; k * k],
            cubes: vec![0; k],
            own: vec![0; k],
            shared: Vec::new(),
            ends: Vec::new(),
        };
        pairs.count(&tokens);
        Some(pairs)
    }

    /// Walks the sorted tokens, a tie group at a time.
    fn count(&mut self, tokens: &[u64]) {
        let k = self.n.len();
        let mut below = vec![0_u64; k]; // doubled, so that a group in passing counts once
        for group in tokens.chunk_by(|&a, &b| key_of(a) == key_of(b)) {
            let trace_of = |token: &u64| (*token as u32 >> 1) as usize;
            for token in group {
                below[trace_of(token)] += 1;
            }
            for token in group.iter().filter(|token| *token & 1 == 1) {
                let row = trace_of(token) * k;
                for (count, below) in self.pairs[row..row + k].iter_mut().zip(&below) {
                    *count += below;
                }
            }
            for token in group {
                below[trace_of(token)] += 1;
            }
            self.count_ties(
                group.chunk_by(|a, b| trace_of(a) == trace_of(b)).map(|own| (trace_of(&own[0]), own.len())),
            );
        }
        for i in 0..k {
            for j in 0..i {
                self.pairs[j * k + i] += std::mem::take(&mut self.pairs[i * k + j]);
            }
        }
    }

    /// Takes in a tie group: how many tokens of which traces.
    fn count_ties(&mut self, mut group: impl Iterator<Item = (usize, usize)>) {
        let (Some((trace, size)), second) = (group.next(), group.next()) else { return };
        match second {
            None => {
                self.cubes[trace] += u128::from(size as u64).pow(3);
                self.own[trace] += size as u64;
            }
            Some(second) => {
                let all = [(trace, size), second].into_iter().chain(group);
                self.shared.extend(all.map(|(trace, size)| (trace as u32, size as u32)));
                self.ends.push(self.shared.len());
            }
        }
    }

    /// The number of traces.
    pub fn n_traces(&self) -> usize {
        self.n.len()
    }

    /// The pooled statistic with trace `i` taken `counts[i]` times (0 leaves it out). `counts` is `[k]`.
    /// Cost `O(k^2)` and the tokens that tie across traces.
    ///
    /// # Panics
    ///
    /// If `counts` is not one count a trace.
    pub fn with_multiplicity(&self, counts: &[u32]) -> BinaryRanks {
        let k = self.n.len();
        assert_eq!(counts.len(), k, "one multiplicity a trace");
        let total = |column: &[u64]| counts.iter().zip(column).map(|(&c, n)| u64::from(c) * n).sum::<u64>();
        let (n, n_pos) = (total(&self.n), total(&self.n_pos));
        let mut twice = 0_u128;
        for (i, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let row = &self.pairs[i * k + i..(i + 1) * k];
            let sum: u64 = row.iter().zip(&counts[i..]).map(|(pairs, &c)| pairs * u64::from(c)).sum();
            twice += u128::from(count) * u128::from(sum);
        }
        BinaryRanks { n, n_pos, twice_rank_sum_pos: twice + u128::from(n_pos), tie_sum: self.tie_sum(counts) }
    }

    fn tie_sum(&self, counts: &[u32]) -> u128 {
        let alone = counts.iter().zip(&self.cubes).zip(&self.own);
        let cube = |c: u32| u128::from(c) * u128::from(c) * u128::from(c);
        let alone: u128 = alone.map(|((&c, cubes), &own)| cube(c) * cubes - u128::from(c) * u128::from(own)).sum();
        let mut start = 0;
        let shared: u128 = self
            .ends
            .iter()
            .map(|&end| {
                let group = &self.shared[std::mem::replace(&mut start, end)..end];
                let size: u64 =
                    group.iter().map(|&(trace, size)| u64::from(counts[trace as usize]) * u64::from(size)).sum();
                if size == 0 { 0 } else { cube_minus_self(size) }
            })
            .sum();
        alone + shared
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::correlation::pooled::PooledSort;

    #[test]
    fn by_hand() {
        // Trace 0: 1 (important), 2; trace 1: 2 (important). Midranks 1, 2.5, 2.5.
        let pairs = PooledPairs::new(&[(&[1.0, 2.0], &[true, false]), (&[2.0], &[true])]).expect("no NaN");
        let once = pairs.with_multiplicity(&[1, 1]);
        assert_eq!((once.n, once.n_pos, once.twice_rank_sum_pos, once.tie_sum), (3, 2, 7, 6));
        // Trace 1 twice: 1, 2, 2, 2; the important ones have ranks 1, 3, 3.
        let twice = pairs.with_multiplicity(&[1, 2]);
        assert_eq!((twice.n, twice.n_pos, twice.twice_rank_sum_pos, twice.tie_sum), (4, 3, 14, 24));
        assert!(PooledPairs::new(&[(&[f32::NAN], &[true])]).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn equals_the_linear_pass(
            traces in prop::collection::vec(prop::collection::vec((-4_i8..4, any::<bool>()), 0..12), 1..6),
            counts in prop::collection::vec(0_u32..4, 6),
        ) {
            let columns: Vec<(Vec<f32>, Vec<bool>)> =
                traces.iter().map(|t| t.iter().map(|&(x, one)| (f32::from(x) / 2.0, one)).unzip()).collect();
            let columns: Vec<(&[f32], &[bool])> = columns.iter().map(|(x, one)| (&x[..], &one[..])).collect();
            let counts = &counts[..columns.len()];
            let (pairs, sorted) = (PooledPairs::new(&columns).expect("no NaN"), PooledSort::new(&columns).expect("no NaN"));
            prop_assert_eq!(pairs.with_multiplicity(counts), sorted.with_multiplicity(counts));
        }
    }
}
